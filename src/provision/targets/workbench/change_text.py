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
"""Values that change with every run or with the state; other notes describe them."""
_FIELDS = {
    "gceSetup/machineType": "machine_type",
    "gceSetup/acceleratorConfigs": "gpu",
    "gceSetup/disablePublicIp": "public_ip",
    "gceSetup/reservationAffinity": "reservation",
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
_FIELDS_OF_BLOCKS = {
    "gceSetup/bootDisk": {
        "diskSizeGb": "boot_disk.size",
        "diskType": "boot_disk.type",
        "kmsKey": "boot_disk.kms_key",
    },
    "gceSetup/dataDisks": {
        "diskSizeGb": "data_disk.size",
        "diskType": "data_disk.type",
        "kmsKey": "data_disk.kms_key",
    },
    "gceSetup/shieldedInstanceConfig": {
        "enableSecureBoot": "shielded.secure_boot",
        "enableVtpm": "shielded.vtpm",
        "enableIntegrityMonitoring": "shielded.integrity_monitoring",
    },
    "gceSetup/networkInterfaces": {"network": "network", "subnet": "subnet"},
    "gceSetup/gpuDriverConfig": {"enableGpuDriver": "gpu_driver"},
}
"""Fields of the spec by path and key, for paths whose values have several."""


def describe_changes(changes: tuple[FieldChange, ...], facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return every field of the spec that differs, with both values.

    Fields that every new run changes are left out.
    """
    return tuple(
        (field, f"{_format(actual)} -> {_format(desired)}")
        for change in changes
        if change.path not in _HIDDEN_PATHS
        for field, actual, desired in _list_fields(change, facts)
        if actual != desired
    )


def _list_fields(change: FieldChange, facts: Facts) -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields of the spec that a change concerns, with their values."""
    path = change.path
    if path not in _FIELDS_OF_BLOCKS:
        field = _FIELDS.get(path) or path.removeprefix("gceSetup/").replace("/", ".", 1)
        actual, desired = change.actual, change.desired
        yield field, _to_spec_value(path, actual, facts), _to_spec_value(path, desired, facts)
        return
    for key, field in _FIELDS_OF_BLOCKS[path].items():
        actual, desired = _first(change.actual).get(key), _first(change.desired).get(key)
        yield field, _to_block_value(key, actual, facts), _to_block_value(key, desired, facts)


def _to_block_value(key: str, value: Any, facts: Facts) -> Any:
    if key.startswith("enable"):
        return bool(value)
    if key == "diskSizeGb":
        return f"{value}GiB" if value else None
    if key == "diskType":
        names = {disk.api: name for name, disk in facts.disks.items()}
        return names.get(str(value), value)
    return value


def _to_spec_value(path: str, value: Any, facts: Facts) -> Any:
    match path:
        case "gceSetup/machineType":
            return str(value or "").rpartition("/")[2]
        case "gceSetup/acceleratorConfigs":
            return _format_gpu(_first(value), facts)
        case "gceSetup/disablePublicIp":
            return not value
        case "gceSetup/reservationAffinity":
            return _only(_first(value).get("values"))
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
            return _format_duration(str(value or ""))
        case "instanceOwners":
            return _only(value)
        case _:
            return value


def _format_gpu(config: Mapping[str, Any], facts: Facts) -> str | None:
    if not config:
        return None
    kind = str(config.get("type", ""))
    names = {card.workbench: card.name for card in facts.cards if card.workbench}
    count = str(config.get("coreCount", "1"))
    name = names.get(kind, kind)
    return name if count == "1" else f"{name}:{count}"


def _format_duration(seconds: str) -> str | None:
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


def _format(value: Any) -> str:
    """Return a value as a spec has it, on one line, without what looks like a secret."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in (None, "", [], {}):
        return "none"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = escape_line(redact(text))
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
