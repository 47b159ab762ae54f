"""Differences between the desired instance and the running one, and how each is applied.

The service adds labels, tags and metadata of its own, and more of them over the years: nothing
that we did not write is compared, and nothing that was read is ever sent back. What the service
does not report faithfully (image, disk types, owner) is compared with what was sent when the
instance was created: by the state's record, else by the instance's own metadata.
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
_READ_AT_START: tuple[str, ...] = (
    "disable-mixer",
    "enable-jupyterlab4",
    "enable-jupyterlab4-preview",
    "geminicli-disabled",
    "geminicli-tc-accepted",
)
_READ_AT_START += (
    "notebook-disable-downloads",
    "notebook-disable-nbconvert",
    "notebook-disable-root",
    "notebook-disable-terminal",
)
"""Keys of metadata that an instance reads when it starts (magic-modules,
pre_update/workbench_instance.go.tmpl).
"""


def find_changes(wanted: Body, real: Body, sent: Body | None) -> tuple[FieldChange, ...]:
    """Return what differs.

    `sent` is the body that was sent last; without it only what the service reports is compared.
    """
    return tuple(_changes(wanted, real, sent or {}))


def build_patch(found: tuple[FieldChange, ...]) -> tuple[dict[str, Any], str]:
    """Return body and update mask for changes in place.

    A removed key of a map is sent as "", since maps are merged.
    """
    body: dict[str, Any] = {}
    masks = []
    for change in found:
        parent, (*above, last) = body, _parts(change.path)
        for key in above:
            parent = parent.setdefault(key, {})
        in_map = _of_map(change.path)
        parent[last] = change.desired
        if change.desired is None:
            parent[last] = "" if in_map else _empty(change.actual)
        masks.append("/".join(above if in_map else [*above, last]))
    return body, ",".join(_mask(path) for path in dict.fromkeys(masks))


def _changes(wanted: Body, real: Body, sent: Body) -> Iterator[FieldChange]:
    yield from _map("labels", wanted, real, sent)
    new, now, old = (body.get("gceSetup", {}) for body in (wanted, real, sent))
    for change in _map("metadata", new, now, old):
        key = change.path.partition("/")[2]
        if key != CREATION_METADATA_KEY:
            yield change._replace(
                path=f"gceSetup/{change.path}",
                method=ChangeMethod.STOPPED if key in _READ_AT_START else ChangeMethod.RUNNING,
            )
    for key, way in _SETUP_FIELD_METHODS.items():
        wants, had = new.get(key), now.get(key)
        if not _same(key, wants, had, old.get(key)):
            if key == "tags":  # those of the service are nobody's business
                had = [tag for tag in had or () if tag in (*(wants or ()), *(old.get(key) or ()))]
            yield FieldChange(
                f"gceSetup/{key}",
                had,
                wants,
                ChangeMethod.REPLACE if _needs_replacement(key, wants, had) else way,
            )
    if sent:
        yield from _creation_changes(wanted, now, sent)
    elif (image := now.get("vmImage", {}).get("name")) and image != new["vmImage"]["name"]:
        yield FieldChange("gceSetup/vmImage", now["vmImage"], new["vmImage"], ChangeMethod.REPLACE)


def _creation_changes(wanted: Body, now: Body, sent: Body) -> Iterator[FieldChange]:
    """Yield the differences from the creation; only a disk that grows needs no new instance."""
    new, old = wanted.get("gceSetup", {}), sent.get("gceSetup", {})
    for key in IMMUTABLE_SETUP_FIELDS:
        way = (
            _disk_change_method(new.get(key), old.get(key), now.get(key))
            if key in ("bootDisk", "dataDisks")
            else ChangeMethod.REPLACE
        )
        if way is not None and new.get(key) != old.get(key):
            real = _disk(now.get(key)).get("diskSizeGb")
            had = old.get(key)
            if way is ChangeMethod.GROW and real is not None:
                had = {**_disk(had), "diskSizeGb": real}
            yield FieldChange(f"gceSetup/{key}", had, new.get(key), way)
    for key in IMMUTABLE_FIELDS:
        if wanted.get(key) != sent.get(key):
            yield FieldChange(key, sent.get(key), wanted.get(key), ChangeMethod.REPLACE)


def _needs_replacement(key: str, wants: Any, had: Any) -> bool:
    """Return whether the service refuses a change in place.

    It refuses a public address back, and a change from G2 to other machines (Workbench
    documentation, Change machine type).
    """
    if key == "machineType":
        return _last(wants).startswith("g2-") != _last(had).startswith("g2-")
    return key == "disablePublicIp" and not wants


def _disk_change_method(wants: Any, sent: Any, real: Any) -> ChangeMethod | None:
    """Return how a disk is changed; None if somebody grew it at least as far by hand."""
    one, other, told = _disk(wants), _disk(sent), _disk(real)
    if {**one, "diskSizeGb": ""} != {**other, "diskSizeGb": ""} or _size(one) < _size(other):
        return ChangeMethod.REPLACE
    return None if _size(told) >= _size(one) else ChangeMethod.GROW


def _map(key: str, wanted: Body, real: Body, sent: Body) -> Iterator[FieldChange]:
    wants, had, ours = wanted.get(key, {}), real.get(key, {}), sent.get(key, {})
    for name in wants:
        if wants[name] != had.get(name) and (
            wants[name] or had.get(name)
        ):  # an empty value and none are the same to the service
            yield FieldChange(f"{key}/{name}", had.get(name), wants[name], ChangeMethod.RUNNING)
    for name in ours:
        if name not in wants and had.get(name):
            yield FieldChange(f"{key}/{name}", had[name], None, ChangeMethod.RUNNING)


def _same(key: str, wants: Any, had: Any, sent: Any) -> bool:
    match key:
        case "machineType":
            return _last(wants) == _last(had)
        case "tags":
            return set(wants or ()) <= set(had or ()) and not (
                set(sent or ()) - set(wants or ())
            ) & set(had or ())
        case "shieldedInstanceConfig" | "gpuDriverConfig":  # false is left out by the service
            return {name: value for name, value in (wants or {}).items() if value} == {
                k: v for k, v in (had or {}).items() if v and k in _known(key)
            }
        case "acceleratorConfigs":
            return [(one.get("type"), str(one.get("coreCount", 1))) for one in wants or ()] == [
                (o.get("type"), str(o.get("coreCount", 1))) for o in had or ()
            ]
        case "reservationAffinity":
            default = {"consumeReservationType": "RESERVATION_ANY"}
            return (wants or default) == (had or default) or (wants is None and sent is None)
        case _:
            return bool(wants) == bool(had)


def _disk(value: Any) -> Body:
    if isinstance(value, list):
        value = value[0] if value else None
    return value or {}


def _size(disk: Body) -> int:
    return int(disk.get("diskSizeGb", 0))


def _known(key: str) -> tuple[str, ...]:
    return (
        ("enableGpuDriver",)
        if key == "gpuDriverConfig"
        else ("enableSecureBoot", "enableVtpm", "enableIntegrityMonitoring")
    )


def _parts(path: str) -> list[str]:
    """Return the parts of a path; a key of a map is one part, whatever characters it has."""
    return path.split("/", 2 if path.startswith("gceSetup/") else 1)


def _of_map(path: str) -> bool:
    return path.startswith(("labels/", "gceSetup/metadata/"))


def _empty(had: Any) -> Any:
    if isinstance(had, list):
        return []
    return {} if isinstance(had, dict) else ""


def _last(value: Any) -> str:
    return str(value or "").rpartition("/")[2]


def _mask(path: str) -> str:
    """Return a path as the update mask spells it: in snake case, as its documentation does."""
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in path)
    return words.replace("/", ".")
