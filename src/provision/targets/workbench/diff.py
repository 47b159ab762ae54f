"""Differences between the desired instance and the running one, and how each is applied.

The service adds its own labels, tags and metadata, and more of them over the years: only values
that we wrote are compared, and values that were read are never sent back. Fields that the service
does not report faithfully (image, disk types, owner) are compared with the request that created the
instance: from the state's record, else from the instance's own metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from provision.targets.workbench.request_body import (
    CREATION_METADATA_KEY,
    IMMUTABLE_FIELDS,
    IMMUTABLE_SETUP_FIELDS,
)

Body = Mapping[str, Any]


class ChangeMethod(Enum):
    """Ways to change a field: running, stopped, by a disk's own call (GROW), or by replacement."""

    RUNNING = "running"
    STOPPED = "stopped"
    GROW = "grow"
    REPLACE = "replace"


class FieldChange(NamedTuple):
    """A field as the update mask names it, with its actual and desired value (None: removed)."""

    path: str
    actual: Any
    desired: Any
    method: ChangeMethod


_SETUP_FIELD_METHODS = {
    "machineType": ChangeMethod.STOPPED,
    "acceleratorConfigs": ChangeMethod.STOPPED,
    "gpuDriverConfig": ChangeMethod.STOPPED,
    "shieldedInstanceConfig": ChangeMethod.STOPPED,
    "reservationAffinity": ChangeMethod.STOPPED,
    "tags": ChangeMethod.RUNNING,
    "disablePublicIp": ChangeMethod.RUNNING,
}
"""Fields below gceSetup that a mask may name (notebooks.v2 discovery document, instances.patch),
and when (magic-modules, workbench Instance.yaml).
"""
_READ_AT_START = (
    "disable-mixer",
    "enable-jupyterlab4",
    "enable-jupyterlab4-preview",
    "geminicli-disabled",
    "geminicli-tc-accepted",
    "notebook-disable-downloads",
    "notebook-disable-nbconvert",
    "notebook-disable-root",
    "notebook-disable-terminal",
)
"""Keys of metadata that an instance reads when it starts (magic-modules,
pre_update/workbench_instance.go.tmpl).
"""
_FLAGS = {
    "gpuDriverConfig": ("enableGpuDriver",),
    "shieldedInstanceConfig": ("enableSecureBoot", "enableVtpm", "enableIntegrityMonitoring"),
}
"""Flags of blocks from which the service leaves out what is false."""


def find_changes(desired: Body, actual: Body, sent: Body | None) -> tuple[FieldChange, ...]:
    """Return the differences.

    `sent` is the body that was sent last; without it only reported fields are compared.
    """
    return tuple(_list_changes(desired, actual, sent or {}))


def build_patch(changes: tuple[FieldChange, ...]) -> tuple[dict[str, Any], str]:
    """Return body and update mask for changes in place.

    A removed key of a map is sent as "", since maps are merged.
    """
    body: dict[str, Any] = {}
    masks = []
    for change in changes:
        parent, (*above, last) = body, _parts(change.path)
        for key in above:
            parent = parent.setdefault(key, {})
        in_map = change.path.startswith(("labels/", "gceSetup/metadata/"))
        parent[last] = change.desired
        if change.desired is None:
            parent[last] = "" if in_map else _empty(change.actual)
        masks.append("/".join(above if in_map else [*above, last]))
    return body, ",".join(_mask(path) for path in dict.fromkeys(masks))


def _list_changes(desired: Body, actual: Body, sent: Body) -> Iterator[FieldChange]:
    yield from _list_map_changes("labels", desired, actual, sent)
    desired_setup, actual_setup, sent_setup = (
        body.get("gceSetup", {}) for body in (desired, actual, sent)
    )
    for change in _list_map_changes("metadata", desired_setup, actual_setup, sent_setup):
        key = change.path.partition("/")[2]
        if key != CREATION_METADATA_KEY:
            method = ChangeMethod.STOPPED if key in _READ_AT_START else ChangeMethod.RUNNING
            yield change._replace(path=f"gceSetup/{change.path}", method=method)
    for key, in_place in _SETUP_FIELD_METHODS.items():
        new, now, old = desired_setup.get(key), actual_setup.get(key), sent_setup.get(key)
        if _is_same(key, new, now, old):
            continue
        if key == "tags":  # the tags of the service are ignored
            now = [tag for tag in now or () if tag in (*(new or ()), *(old or ()))]
        method = ChangeMethod.REPLACE if _needs_replacement(key, new, now) else in_place
        yield FieldChange(f"gceSetup/{key}", now, new, method)
    if sent:
        yield from _list_creation_changes(desired, actual_setup, sent)
        return
    image = actual_setup.get("vmImage", {})
    if image.get("name") and image["name"] != desired_setup["vmImage"]["name"]:
        method = ChangeMethod.REPLACE
        yield FieldChange("gceSetup/vmImage", image, desired_setup["vmImage"], method)


def _list_creation_changes(desired: Body, actual_setup: Body, sent: Body) -> Iterator[FieldChange]:
    """Yield the differences from the creation; only growing a disk needs no new instance."""
    for key in IMMUTABLE_SETUP_FIELDS:
        new, old = (body.get("gceSetup", {}).get(key) for body in (desired, sent))
        if new == old:
            continue
        method: ChangeMethod | None = ChangeMethod.REPLACE
        if key in ("bootDisk", "dataDisks"):
            method = _disk_change_method(new, old, actual_setup.get(key))
        if method is ChangeMethod.GROW:
            size = _disk(actual_setup.get(key)).get("diskSizeGb")
            old = old if size is None else {**_disk(old), "diskSizeGb": size}
        if method is not None:
            yield FieldChange(f"gceSetup/{key}", old, new, method)
    for key in IMMUTABLE_FIELDS:
        if desired.get(key) != sent.get(key):
            yield FieldChange(key, sent.get(key), desired.get(key), ChangeMethod.REPLACE)


def _needs_replacement(key: str, desired: Any, actual: Any) -> bool:
    """Return whether the service refuses a change in place.

    It refuses to add a public address again, and to change between G2 and other machines (Workbench
    documentation, Change machine type).
    """
    if key == "machineType":
        return _last(desired).startswith("g2-") != _last(actual).startswith("g2-")
    return key == "disablePublicIp" and not desired


def _disk_change_method(desired: Any, sent: Any, actual: Any) -> ChangeMethod | None:
    """Return how a disk is changed; None if it was already grown by hand."""
    new, old = _disk(desired), _disk(sent)
    if {**new, "diskSizeGb": ""} != {**old, "diskSizeGb": ""} or _size(new) < _size(old):
        return ChangeMethod.REPLACE
    return None if _size(_disk(actual)) >= _size(new) else ChangeMethod.GROW


def _list_map_changes(key: str, desired: Body, actual: Body, sent: Body) -> Iterator[FieldChange]:
    new, now, old = (body.get(key, {}) for body in (desired, actual, sent))
    for name, value in new.items():
        # The service does not distinguish an empty value from a missing one.
        if value != now.get(name) and (value or now.get(name)):
            yield FieldChange(f"{key}/{name}", now.get(name), value, ChangeMethod.RUNNING)
    for name in old:
        if name not in new and now.get(name):
            yield FieldChange(f"{key}/{name}", now[name], None, ChangeMethod.RUNNING)


def _is_same(key: str, desired: Any, actual: Any, sent: Any) -> bool:
    if key == "tags":
        tags = set(actual or ())
        removed = set(sent or ()) - set(desired or ())
        return set(desired or ()) <= tags and not removed & tags
    if key == "reservationAffinity" and desired is None and sent is None:
        return True
    return bool(_comparable(key, desired) == _comparable(key, actual))


def _comparable(key: str, value: Any) -> Any:
    """Return the part of a field below gceSetup that is compared."""
    match key:
        case "machineType":
            return _last(value)
        case "shieldedInstanceConfig" | "gpuDriverConfig":
            return [flag for flag in _FLAGS[key] if (value or {}).get(flag)]
        case "acceleratorConfigs":
            return [(gpu.get("type"), str(gpu.get("coreCount", 1))) for gpu in value or ()]
        case "reservationAffinity":
            return value or {"consumeReservationType": "RESERVATION_ANY"}
        case _:
            return bool(value)


def _disk(value: Any) -> Body:
    if isinstance(value, list):
        value = value[0] if value else None
    return value or {}


def _size(disk: Body) -> int:
    return int(disk.get("diskSizeGb", 0))


def _parts(path: str) -> list[str]:
    """Return the parts of a path; a key of a map is one part, even with slashes."""
    return path.split("/", 2 if path.startswith("gceSetup/") else 1)


def _empty(actual: Any) -> Any:
    if isinstance(actual, list):
        return []
    return {} if isinstance(actual, dict) else ""


def _last(value: Any) -> str:
    return str(value or "").rpartition("/")[2]


def _mask(path: str) -> str:
    """Return a path as the update mask spells it: in snake case, as its documentation does."""
    snake_case = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in path)
    return snake_case.replace("/", ".")
