"""The digest of a spec's text about packages: it can confirm a lock without the spec's model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from provision.kinds import registry_in_use
from provision.lock.model import digest_of

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
    return digest_of({**_deciding_fields(data, _DECIDING), **_deciding_target_fields(data)})


def _deciding_fields(data: Mapping[str, Any], deciding: tuple[str, ...]) -> dict[str, Any]:
    fields = {}
    for name in deciding:
        if name in data:
            value = data[name]
            if isinstance(value, list):
                value = sorted(value, key=lambda item: json.dumps(item, sort_keys=True))
            fields[name] = value
    required = data.get("requires", {})
    if isinstance(required, Mapping):
        required = {name: required[name] for name in _DECIDING_OF_REQUIRES if name in required}
    if required != {}:  # an empty `requires` is the same as none
        fields["requires"] = required
    return fields


def _deciding_target_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    if "targets" not in data:
        return {}
    targets = data["targets"]
    if not isinstance(targets, Mapping):
        return {"targets": targets}
    declared = (field for kind in registry_in_use.get().kinds for field in kind.lock_fields)
    deciding, fields = (*_DECIDING_OF_TARGET, *declared), {}
    for name, target in targets.items():
        fields[name] = target
        if isinstance(target, Mapping):
            fields[name] = _deciding_fields(target, deciding)
    return {"targets": fields}
