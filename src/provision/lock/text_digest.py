"""The digest of what a spec's text says about packages: by it alone a lock can be found to hold,
without the model of the language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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
"""Fields of a spec that decide packages, all that they hold included."""
_DECIDING_OF_TARGET = ("kind", "manager", "gpu", "cuda", "runtime", "isolation", "image")
"""The same of a target."""
_DECIDING_OF_REQUIRES = ("driver", "compute_capability")
"""The same of `requires`, of the spec and of a target."""


def compute_text_digest(data: Mapping[str, Any]) -> str:
    """Return the digest over the deciding fields of a composed spec: after anchors, merge keys and
    `extends`, before the model.

    Any data has a digest, also such as the model would refuse. Order counts in no mapping, nor
    in a list at the top. The same thing said in another form
    (`gpu: L4` and `gpu: {type: L4}`) has another digest: equal digests mean that nothing moved,
    different ones mean nothing.
    """
    return digest_of({**_deciding_fields(data, _DECIDING), **_deciding_target_fields(data)})


def _deciding_fields(place: Mapping[str, Any], deciding: tuple[str, ...]) -> dict[str, Any]:
    said = {name: _unordered(place[name]) for name in deciding if name in place}
    # An empty `requires` asks for nothing, as none does.
    if "requires" in place and (required := _part(place["requires"], _DECIDING_OF_REQUIRES)) != {}:
        said["requires"] = required
    return said


def _deciding_target_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    if "targets" not in data:
        return {}
    targets = data["targets"]
    if not isinstance(targets, Mapping):
        return {"targets": targets}
    return {
        "targets": {
            name: _deciding_fields(one, _DECIDING_OF_TARGET) if isinstance(one, Mapping) else one
            for name, one in targets.items()
        }
    }


def _part(value: Any, names: tuple[str, ...]) -> Any:
    return (
        {name: value[name] for name in names if name in value}
        if isinstance(value, Mapping)
        else value
    )


def _unordered(value: Any) -> Any:
    return (
        sorted(value, key=lambda item: json.dumps(item, sort_keys=True))
        if isinstance(value, list)
        else value
    )
