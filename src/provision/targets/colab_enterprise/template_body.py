"""Request body of a runtime template: REST JSON of aiplatform v1, and differences between bodies.

Only values that we send are compared, as the service adds others. What it does not report
(`eucConfig` is input only) is compared with the body that was sent last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from provision.facts import Card, Facts
from provision.field_types import parse_duration, parse_size
from provision.targets.colab_enterprise.resource_names import (
    TemplateNames,
    get_enterprise_target,
)
from provision.targets.context import TargetContext, declared_variables
from provision.targets.workbench.resource_names import LINEAGE_LABEL, build_owner_labels

Body = Mapping[str, Any]
_DISPLAY_NAME_LENGTH = 128
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"


class TemplateChange(NamedTuple):
    """A field of the spec that differs; `mask` is "" if no update changes it."""

    field: str
    actual: str
    desired: str
    mask: str


def release_name(python: str, facts: Facts) -> str:
    """Return the image release with a Python; "" if none is known, for the newest release."""
    known = facts.conditions["enterprise Pythons"].value.split()
    return f"py{python.replace('.', '')}" if python in known else ""


def build_template_body(
    context: TargetContext,
    names: TemplateNames,
    machine_type: str,
    card: Card | None,
    facts: Facts,
) -> dict[str, Any]:
    """Return the body of the template.

    Keys are camelCase, enums and int64 are strings. Every default is sent, so that a change of a
    default at the service is a difference.
    """
    spec, target = context.spec, get_enterprise_target(context)
    machine: dict[str, Any] = {"machineType": machine_type}
    if card is not None:
        machine |= {"acceleratorType": card.workbench, "acceleratorCount": spec.gpu.count}
    idle: dict[str, Any] = {"idleShutdownDisabled": True}
    if target.idle_shutdown is not None:
        idle = {"idleTimeout": f"{parse_duration(target.idle_shutdown)}s"}
    network: dict[str, Any] = {"enableInternetAccess": target.internet}
    if target.network is not None:
        network["network"] = _full_name(target.network, f"projects/{names.project}/global/networks")
    if target.subnet is not None:
        parent = f"projects/{names.project}/regions/{names.region}/subnetworks"
        network["subnetwork"] = _full_name(target.subnet, parent)
    variables = declared_variables(spec)
    body: dict[str, Any] = {
        "displayName": f"{spec.name} ({context.stem}/{context.target})"[:_DISPLAY_NAME_LENGTH],
        "labels": build_owner_labels(context, names.lineage),
        "machineSpec": machine,
        "dataPersistentDiskSpec": {
            "diskType": facts.disks[target.data_disk.type].api.lower().replace("_", "-"),
            "diskSizeGb": str(math.ceil(parse_size(target.data_disk.size) / 2**30)),
        },
        "networkSpec": network,
        "idleShutdownConfig": idle,
        "eucConfig": {"eucDisabled": not target.end_user_credentials},
        "shieldedVmConfig": {"enableSecureBoot": target.secure_boot},
        "softwareConfig": {
            "env": [{"name": name, "value": value} for name, value in sorted(variables.items())],
            "colabImage": {"releaseName": release_name(spec.python, facts)},
        },
    }
    if target.reservation is not None:
        body["reservationAffinity"] = {
            "consumeReservationType": "RESERVATION_SPECIFIC",
            "key": _RESERVATION_KEY,
            "values": [target.reservation],
        }
    return body


def find_changes(desired: Body, actual: Body, sent: Body | None) -> tuple[TemplateChange, ...]:
    """Return the differences.

    `sent` is the body that was sent last; without it, unreported fields are not compared.
    """
    return tuple(_list_changes(desired, actual, sent))


def build_patch(desired: Body, changes: tuple[TemplateChange, ...]) -> tuple[dict[str, Any], str]:
    """Return body and update mask for changes in place."""
    masks = tuple(change.mask for change in changes if change.mask)
    body = {
        key: desired[key]
        for key in ("displayName", "softwareConfig")
        if any(_starts_with(mask, key) for mask in masks)
    }
    return body, ",".join(masks)


def _list_changes(desired: Body, actual: Body, sent: Body | None) -> Iterator[TemplateChange]:
    for field, mask, read in _REPORTED:
        new, now = read(desired), read(actual)
        if new != now:
            yield TemplateChange(field, now, new, mask)
    for field, read in _REPORTED_IF_SET:
        new, now = read(desired), read(actual)
        # A value that nobody declared is the service's own.
        if new != now and (new or read(sent or {})):
            yield TemplateChange(field, now, new, "")
    new = _euc(desired)
    if sent is not None and new != _euc(sent):
        yield TemplateChange("end_user_credentials", _euc(sent), new, "")


def _text(*route: str) -> Callable[[Body], str]:
    def read(body: Body) -> str:
        value: Any = body
        for key in route:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            return str(value).lower()
        return "" if value is None else str(value)

    return read


def _flag(*route: str) -> Callable[[Body], str]:
    """Return a reader of a flag, which the service leaves out while it is false."""
    read = _text(*route)
    return lambda body: read(body) or "false"


def _gpu(body: Body) -> str:
    machine = body.get("machineSpec", {})
    kind = machine.get("acceleratorType", "")
    return f"{machine.get('acceleratorCount', 1)} x {kind}" if kind else "none"


def _idle(body: Body) -> str:
    """Return the timeout; the service leaves the whole block out if it is disabled."""
    idle = body.get("idleShutdownConfig", {})
    return "never" if idle.get("idleShutdownDisabled") else str(idle.get("idleTimeout", "never"))


def _env(body: Body) -> str:
    variables = body.get("softwareConfig", {}).get("env") or ()
    return ", ".join(sorted(f"{row.get('name')}={row.get('value', '')}" for row in variables))


def _owner(body: Body) -> str:
    return str(body.get("labels", {}).get(LINEAGE_LABEL, ""))


def _reservation(body: Body) -> str:
    return ", ".join(body.get("reservationAffinity", {}).get("values") or ())


def _euc(body: Body) -> str:
    return "false" if body.get("eucConfig", {}).get("eucDisabled") else "true"


_RELEASE_MASK = "software_config.colab_image.release_name"
_REPORTED: tuple[tuple[str, str, Callable[[Body], str]], ...] = (
    ("name", "display_name", _text("displayName")),
    ("env", "software_config.env", _env),
    ("python", _RELEASE_MASK, _text("softwareConfig", "colabImage", "releaseName")),
    ("owner", "", _owner),
    ("machine_type", "", _text("machineSpec", "machineType")),
    ("gpu", "", _gpu),
    ("data_disk.type", "", _text("dataPersistentDiskSpec", "diskType")),
    ("data_disk.size", "", _text("dataPersistentDiskSpec", "diskSizeGb")),
    ("internet", "", _flag("networkSpec", "enableInternetAccess")),
    ("idle_shutdown", "", _idle),
    ("secure_boot", "", _flag("shieldedVmConfig", "enableSecureBoot")),
)
"""Field of the spec, path in an update mask ("" if immutable), and reader.

Masks: aiplatform v1 discovery document, notebookRuntimeTemplates.patch.
"""
_REPORTED_IF_SET = (
    ("network", _text("networkSpec", "network")),
    ("subnet", _text("networkSpec", "subnetwork")),
    ("reservation", _reservation),
)


def _starts_with(mask: str, key: str) -> bool:
    return mask.split(".", maxsplit=1)[0].replace("_", "") == key.lower()


def _full_name(name: str, parent: str) -> str:
    return name if "/" in name else f"{parent}/{name}"
