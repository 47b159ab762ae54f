"""Changes of an instance as fields of the spec, with their values before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.facts import Facts
from provision.sanitize import escape_line, redact
from provision.targets.workbench.diff import FieldChange
from provision.targets.workbench.resource_names import LINEAGE_LABEL

_MAX_CHARACTERS = 100
"""Characters of a value that a plan shows. Our choice."""
_HIDDEN_PATHS = (
    "gceSetup/metadata/provision-run",
    "labels/provision-lock",
    f"labels/{LINEAGE_LABEL}",
)
"""What changes with every run, or with the state: the packages, the promises and whose it is are
told of in their own words.
"""
_FIELDS = {
    "gceSetup/machineType": "machine_type",
    "gceSetup/acceleratorConfigs": "gpu",
    "gceSetup/tags": "tags",
    "gceSetup/metadata/idle-timeout-seconds": "idle_shutdown",
    "gceSetup/metadata/provision-max-lifetime-seconds": "max_lifetime",
    "gceSetup/metadata/post-startup-script": "bucket",
    "gceSetup/serviceAccounts": "service_account",
    "gceSetup/vmImage": "image",
    "instanceOwners": "access.owner",
    "enableManagedEuc": "managed_euc",
    "zone": "zones",
}
_DISKS = {"gceSetup/bootDisk": "boot_disk", "gceSetup/dataDisks": "data_disk"}
_SHIELDED = {
    "enableSecureBoot": "secure_boot",
    "enableVtpm": "vtpm",
    "enableIntegrityMonitoring": "integrity_monitoring",
}


def describe_changes(found: tuple[FieldChange, ...], facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return every field of the spec that differs, with both values.

    What every new run changes is left out.
    """
    lines = [
        pair
        for change in found
        if change.path not in _HIDDEN_PATHS
        for pair in _pairs(change, facts)
    ]
    return tuple((field, f"{_shown(had)} -> {_shown(wants)}") for field, had, wants in lines)


def _pairs(change: FieldChange, facts: Facts) -> Iterator[tuple[str, Any, Any]]:
    path, had, wants = change.path, change.actual, change.desired
    if path in _DISKS:
        yield from _of_disk(_DISKS[path], _first(had), _first(wants), facts)
    elif path == "gceSetup/shieldedInstanceConfig":
        one, other = _first(had), _first(wants)
        values = (
            (f"shielded.{name}", bool(one.get(key)), bool(other.get(key)))
            for key, name in _SHIELDED.items()
        )
        yield from (value for value in values if value[1] != value[2])
    elif path == "gceSetup/networkInterfaces":
        one, other = _first(had), _first(wants)
        yield from (
            (key, one.get(key), other.get(key))
            for key in ("network", "subnet")
            if one.get(key) != other.get(key)
        )
    elif path == "gceSetup/gpuDriverConfig":
        yield (
            "gpu_driver",
            bool(_first(had).get("enableGpuDriver")),
            bool(_first(wants).get("enableGpuDriver")),
        )
    elif path == "gceSetup/disablePublicIp":
        yield "public_ip", not had, not wants
    elif path == "gceSetup/reservationAffinity":
        yield "reservation", _only(_first(had).get("values")), _only(_first(wants).get("values"))
    elif (one := _value(path, had, facts)) != (other := _value(path, wants, facts)):
        yield _name(path), one, other


def _name(path: str) -> str:
    return _FIELDS.get(path) or path.removeprefix("gceSetup/").replace("/", ".", 1)


def _value(path: str, value: Any, facts: Facts) -> Any:
    match path:
        case "gceSetup/machineType":
            return str(value or "").rpartition("/")[2]
        case "gceSetup/acceleratorConfigs":
            return _card(_first(value), facts)
        case "gceSetup/vmImage":
            return _first(value).get("name") or _first(value).get("family")
        case "gceSetup/serviceAccounts":
            return _first(value).get("email")
        case "gceSetup/metadata/post-startup-script":
            return str(value or "").rsplit("/", 3)[0]  # without instance, lineage and program
        case (
            "gceSetup/metadata/idle-timeout-seconds"
            | "gceSetup/metadata/provision-max-lifetime-seconds"
        ):
            return _duration(str(value or ""))
        case "instanceOwners":
            return _only(value)
        case _:
            return value


def _of_disk(
    field: str, had: Mapping[str, Any], wants: Mapping[str, Any], facts: Facts
) -> Iterator[tuple[str, Any, Any]]:
    kinds = {kind.api: name for name, kind in facts.disks.items()}
    for key, name in (("diskSizeGb", "size"), ("diskType", "type"), ("kmsKey", "kms_key")):
        one, other = had.get(key), wants.get(key)
        if one == other:
            continue
        if key == "diskSizeGb":
            one, other = (f"{size}GiB" if size else None for size in (one, other))
        yield f"{field}.{name}", kinds.get(str(one), one), kinds.get(str(other), other)


def _card(config: Mapping[str, Any], facts: Facts) -> str | None:
    if not config:
        return None
    name = next(
        (
            card.name
            for card in facts.cards
            if card.workbench and card.workbench == config.get("type")
        ),
        str(config.get("type", "")),
    )
    count = str(config.get("coreCount", "1"))
    return name if count == "1" else f"{name}:{count}"


def _duration(seconds: str) -> str | None:
    if not seconds.isdecimal() or int(seconds) == 0:
        return seconds or None
    for unit, length in (("h", 3600), ("m", 60)):
        if int(seconds) % length == 0:
            return f"{int(seconds) // length}{unit}"
    return f"{seconds}s"


def _first(value: Any) -> Mapping[str, Any]:
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, Mapping) else {}


def _only(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _shown(value: Any) -> str:
    """Return a value as a spec has it, on one line, without what looks like a secret."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in (None, "", [], {}):
        return "none"
    text = escape_line(
        redact(", ".join(map(str, value)) if isinstance(value, list) else str(value))
    )
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
