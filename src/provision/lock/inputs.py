"""The fields of a spec that decide packages, as values and as a digest of their text.

The digest needs no model of the language, which loads slowly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provision.kinds import registry_in_use
from provision.lock.model import Lock, digest_of

if TYPE_CHECKING:
    from provision.spec import CondaPackage, Package, Spec

_DECIDING = (
    "apiVersion",
    "python",
    "gpu",
    "cuda",
    "packages",
    "indexes",
    "exclude_newer",
    "platforms",
    "conda_packages",
)
"""Fields of a spec that decide packages, with all their content."""
_DECIDING_OF_TARGET = ("kind", "gpu", "cuda")
"""The same of a target; its kind declares more."""
_DECIDING_OF_REQUIRES = ("driver", "compute_capability")
"""The same of `requires`, of the spec and of a target."""


def compute_text_digest(data: Mapping[str, Any]) -> str:
    """Return the digest over the deciding fields of a composed spec, before the model.

    Anchors, merge keys and `extends` are resolved. Any data has a digest, also data that the model
    would refuse. The order of mappings and of lists at the top does not count. Another form of the
    same value (`gpu: L4` and `gpu: {type: L4}`) has another digest: equal digests prove that
    nothing changed, different ones prove nothing.
    """
    fields = _deciding_fields(data, _DECIDING)
    if "targets" in data:
        fields["targets"] = data["targets"]
        if isinstance(data["targets"], Mapping):
            declared = (field for kind in registry_in_use.get().kinds for field in kind.lock_fields)
            deciding = (*_DECIDING_OF_TARGET, *declared)
            fields["targets"] = {
                name: _deciding_fields(target, deciding) for name, target in data["targets"].items()
            }
    return digest_of(fields)


def _deciding_fields(data: Any, deciding: tuple[str, ...]) -> Any:
    if not isinstance(data, Mapping):
        return data
    fields = {}
    for name in deciding:
        if name in data:
            value = data[name]
            if isinstance(value, list):
                value = sorted(value, key=lambda item: json.dumps(item, sort_keys=True))
            fields[name] = value
    code = data.get("code")
    if isinstance(code, Mapping) and "git" in code:
        fields["code"] = code
    required = data.get("requires", {})
    if isinstance(required, Mapping):
        required = {name: required[name] for name in _DECIDING_OF_REQUIRES if name in required}
    if required != {}:  # an empty `requires` is the same as none
        fields["requires"] = required
    return fields


def collect_lock_inputs(spec: Spec) -> dict[str, Any]:
    """Return the fields that decide packages, in one fixed form.

    A changed zone, label or path does not change it.
    """
    used = {package.index for package in spec.packages}
    inputs: dict[str, Any] = {
        "python": spec.python,
        "gpu": str(spec.gpu),
        "cuda": spec.cuda,
        "packages": sorted(_package_line(package) for package in spec.packages),
        "indexes": {
            name: index.url
            for name, index in sorted(spec.indexes.items())
            if name in used or name.startswith("pytorch-")
        },
        "exclude_newer": spec.exclude_newer,
        "platforms": sorted(spec.platforms),
        "targets": {name: _target_line(spec, name) for name in sorted(spec.targets)},
    }
    if spec.code is not None and spec.code.git is not None:
        inputs["code"] = spec.code.source
    if spec.conda_packages:
        lines = (_conda_line(package, spec) for package in spec.conda_packages)
        inputs["conda_packages"] = sorted(lines)
    return inputs


def is_line_locked(package: Package, lock: Lock) -> bool:
    """Return whether a lock was made of the same line for a package."""
    return _package_line(package) in lock.inputs.get("packages", ())


def name_default_target(lock: Lock, spec: Spec) -> Lock:
    """Return a lock with the name that the default target has in the spec.

    Earlier versions had another name, which decides nothing. The digest stays that of the file.
    """
    from provision.spec import DEFAULT_TARGET, EARLIER_DEFAULT_TARGET

    if (
        not spec.has_default_target
        or list(lock.targets) not in ([DEFAULT_TARGET], [EARLIER_DEFAULT_TARGET])
        or not isinstance(lock.inputs.get("targets"), dict)
    ):
        return lock
    (name,) = spec.targets
    targets = dict.fromkeys([name], *lock.targets.values())
    inputs = {**lock.inputs, "targets": dict.fromkeys([name], *lock.inputs["targets"].values())}
    return replace(lock, inputs=inputs, targets=targets)


def list_changed_inputs(spec: Spec, lock: Lock) -> tuple[str, ...]:
    """Return one line for each change of the spec since the lock was made."""
    return tuple(_changed_lines(collect_lock_inputs(spec), lock.inputs))


def _package_line(package: Package) -> str:
    index = f" from {package.index or package.origin}" if package.index or package.origin else ""
    conda = " from conda where a target has it" if package.source == "conda" else ""
    build = " or its source" if package.build is True else ""
    if package.built_names:
        build = f" or the source of {', '.join(sorted(package.built_names))}"
    return package.requirement + index + build + conda


def _conda_line(package: CondaPackage, spec: Spec) -> str:
    url = f" at {spec.indexes[package.channel].url}" if package.channel in spec.indexes else ""
    return f"{package.name} {package.version}".strip() + f" from {package.channel}{url}"


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
            yield from (f"{key}: + {item}" for item in new if item not in old)
            yield from (f"{key}: - {item}" for item in old if item not in new)
        elif isinstance(new, dict) and isinstance(old, dict):
            for name in sorted({*new, *old}):
                before, after = old.get(name, "absent"), new.get(name, "absent")
                if before != after:
                    yield f"{key}.{name}: {before} -> {after}"
        elif new != old:
            before, after = locked.get(key, "absent"), current.get(key, "absent")
            yield f"{key}: {before} -> {after}"
