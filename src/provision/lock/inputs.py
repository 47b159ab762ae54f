"""What a spec asks of a lock: the fields that decide packages, and where they differ from what was
locked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.lock.model import Lock
from provision.spec import ColabTarget, CondaPackage, LocalTarget, Package, Spec, WorkbenchTarget


def collect_lock_inputs(spec: Spec) -> dict[str, Any]:
    """Return the fields that decide packages, in one fixed form; a changed zone, label or path does
    not change it.
    """
    return {
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
        **(
            {
                "conda_packages": sorted(
                    _conda_line(package, spec) for package in spec.conda_packages
                )
            }
            if spec.conda_packages
            else {}
        ),
    }


def list_changed_inputs(spec: Spec, lock: Lock) -> tuple[str, ...]:
    """Return one line for each thing that the spec now asks otherwise than when the lock was made;
    () when it holds.
    """
    return tuple(_changed_lines(collect_lock_inputs(spec), lock.inputs))


def find_unlockable(spec: Spec) -> tuple[tuple[tuple[str | int, ...], str], ...]:
    """Return (route, reason) for every choice of the spec that cannot be locked by this version."""
    return tuple(_unlockable(spec))


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
    target = spec.targets[name]
    own = spec.for_target(name)
    words: list[str] = [target.kind]
    match target:
        case LocalTarget():
            words.append(target.manager)
        case ColabTarget():
            words += [target.runtime, target.isolation]
        case WorkbenchTarget():
            words.append(target.image or "")
        case _:
            pass
    required = [
        f"{name}={value}"
        for name in ("driver", "compute_capability")
        if (value := getattr(own.requires, name)) is not None
    ]
    return " ".join([*words, f"gpu={own.gpu}", f"cuda={own.cuda}", *required])


def _changed_lines(now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*now, *then)):
        new, old = now.get(key), then.get(key)
        if isinstance(new or old, list):
            new, old = new or [], old or []
        if new == old:
            continue
        if isinstance(new, list) and isinstance(old, list):
            yield from (f"{key}: + {item}" for item in new if item not in old)
            yield from (f"{key}: - {item}" for item in old if item not in new)
        elif isinstance(new, dict) and isinstance(old, dict):
            yield from (
                f"{key}.{name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
                for name in sorted({*new, *old})
                if new.get(name) != old.get(name)
            )
        else:
            yield f"{key}: {old} -> {new}"


def _unlockable(spec: Spec) -> Iterator[tuple[tuple[str | int, ...], str]]:
    with_conda = any(
        isinstance(target, LocalTarget) and target.manager == "conda"
        for target in spec.targets.values()
    )
    for number, package in enumerate(spec.packages):
        if package.source == "conda" and not with_conda:
            yield (
                ("packages", number),
                "source: conda is for targets with `manager: conda`, and there is none",
            )
    if "pypi" in spec.indexes:
        yield (
            ("indexes", "pypi"),
            (
                "pypi is the name of the default index: a mirror of it is named by pip's "
                "index-url or PROVISION_INDEX_PYPI"
            ),
        )
    if spec.conda_packages and not with_conda:
        yield (
            ("conda_packages",),
            "conda packages are for targets with `manager: conda`, and there is none",
        )
