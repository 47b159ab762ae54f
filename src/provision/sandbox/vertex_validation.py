"""Validation that resources of Vertex AI share, beyond the schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from provision.facts import Card, Facts
from provision.facts.schema_platforms import MachineType
from provision.sandbox import hardware
from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.instance_validation import check_labels

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_VARIABLES = 100
_MAX_DISPLAY_NAME = 128


def check_heading(body: Mapping[str, Any]) -> None:
    """Raise ApiError for a missing or long display name, or invalid labels."""
    if not 0 < len(body.get("displayName", "")) <= _MAX_DISPLAY_NAME:
        raise invalid_argument("'display_name' is required, with at most 128 characters")
    check_labels(body.get("labels", {}))


def check_variables(variables: Iterable[Mapping[str, Any]], field: str) -> None:
    """Raise ApiError for too many environment variables, or an invalid or repeated name."""
    names = [variable.get("name", "") for variable in variables]
    if len(names) > _MAX_VARIABLES:
        raise invalid_argument(f"'{field}' has more than {_MAX_VARIABLES} variables")
    for name in names:
        if not _VARIABLE.fullmatch(name) or names.count(name) > 1:
            raise invalid_argument(f"Invalid environment variable '{name}'")


def check_machine_type(
    name: str,
    machine: Mapping[str, Any],
    facts: Facts,
    name_of: Callable[[Card], str],
    is_offered: Callable[[MachineType], bool] = lambda _: True,
) -> Card | None:
    """Return the GPU of a machine; None without one.

    Raises:
        ApiError: the machine type or its GPU is unknown, or they do not fit.
    """
    known = facts.machines.get(name)
    if known is None or not is_offered(known):
        raise invalid_argument(f"Machine type '{name}' is not supported")
    kind, count = machine.get("acceleratorType", ""), int(machine.get("acceleratorCount", 0))
    if bool(kind) != bool(count):
        raise invalid_argument("'accelerator_type' and 'accelerator_count' go together")
    if not kind:
        if known.gpus:
            raise invalid_argument(f"Machine type '{name}' needs its accelerator type and count")
        return None
    card = next((card for card in facts.cards if name_of(card) == kind), None)
    if card is None or not hardware.is_compatible(known, card, count, facts):
        raise invalid_argument(f"{count} x {kind} cannot be used with machine type '{name}'")
    return card


def check_reservation(
    affinity: Mapping[str, Any] | None, type_field: str, specific: str, at: str = ""
) -> None:
    """Raise ApiError unless a reservation has its name if, and only if, it is specific."""
    if affinity is None:
        return
    is_specific = affinity.get(type_field) == specific
    if is_specific != bool(affinity.get("key") and affinity.get("values")):
        raise invalid_argument(f"'{at}key' and 'values' go with {specific}")


def check_disk_size(disk: Mapping[str, Any], field: str, at: str, limits: tuple[int, int]) -> None:
    """Raise ApiError for a size outside of the limits, in GB; no size means the default."""
    least, most = limits
    if not least <= int(disk.get(field, least)) <= most:
        raise invalid_argument(f"'{at}' must be from {least} to {most}")
