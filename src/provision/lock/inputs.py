"""The fields of a spec that decide packages, and their changes since a lock was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.lock.model import Lock
from provision.spec import CondaPackage, Package, Spec


def collect_lock_inputs(spec: Spec) -> dict[str, Any]:
    """Return the fields that decide packages, in one fixed form.

    A changed zone, label or path does not change it.
    """
    inputs: dict[str, Any] = {
        "python": spec.python,
        "gpu": str(spec.gpu),
        "cuda": spec.cuda,
        "packages": sorted(_package_line(package) for package in spec.packages),
        "indexes": {
            name: index.url
            for name, index in sorted(spec.indexes.items())
            if _is_used_index(name, spec)
        },
        "exclude_newer": spec.exclude_newer,
        "platforms": sorted(spec.platforms),
        "targets": {name: _target_line(spec, name) for name in sorted(spec.targets)},
    }
    if spec.conda_packages:
        lines = (_conda_line(package, spec) for package in spec.conda_packages)
        inputs["conda_packages"] = sorted(lines)
    return inputs


def list_changed_inputs(spec: Spec, lock: Lock) -> tuple[str, ...]:
    """Return one line for each change of the spec since the lock was made."""
    return tuple(_changed_lines(collect_lock_inputs(spec), lock.inputs))


def _package_line(package: Package) -> str:
    index = f" from {package.index}" if package.index else ""
    conda = " from conda where a target has it" if package.source == "conda" else ""
    return package.requirement + index + (" or its source" if package.build else "") + conda


def _conda_line(package: CondaPackage, spec: Spec) -> str:
    url = f" at {spec.indexes[package.channel].url}" if package.channel in spec.indexes else ""
    return f"{package.name} {package.version}".strip() + f" from {package.channel}{url}"


def _is_used_index(index: str, spec: Spec) -> bool:
    return index.startswith("pytorch-") or any(package.index == index for package in spec.packages)


def _target_line(spec: Spec, name: str) -> str:
    target, own = spec.targets[name], spec.for_target(name)
    values = [
        target.kind,
        *spec.registry.kind_of(target).lock_inputs(target),
        f"gpu={own.gpu}",
        f"cuda={own.cuda}",
    ]
    for key in ("driver", "compute_capability"):
        required = getattr(own.requires, key)
        if required is not None:
            values.append(f"{key}={required}")
    return " ".join(values)


def _changed_lines(current: Mapping[str, Any], locked: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*current, *locked)):
        new, old = current.get(key), locked.get(key)
        if isinstance(new or old, list):
            new, old = new or [], old or []
        if new == old:
            continue
        if isinstance(new, list) and isinstance(old, list):
            yield from (f"{key}: + {item}" for item in new if item not in old)
            yield from (f"{key}: - {item}" for item in old if item not in new)
        elif isinstance(new, dict) and isinstance(old, dict):
            for name in sorted({*new, *old}):
                before, after = old.get(name, "absent"), new.get(name, "absent")
                if before != after:
                    yield f"{key}.{name}: {before} -> {after}"
        else:
            yield f"{key}: {old} -> {new}"
