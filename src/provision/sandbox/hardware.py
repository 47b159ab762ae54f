"""Machine types and cards by zone from the facts, with Compute Engine's errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.facts import Card, Facts
from provision.facts.lazy_tables import load_zones
from provision.facts.schema_platforms import MachineType
from provision.sandbox.api_errors import (
    ApiError,
    StatusCode,
    error_info,
    invalid_argument,
    resource_not_found,
)
from provision.sandbox.request_validation import first_or_empty

DEFAULT_MACHINE = "e2-standard-4"


def hardware_error(
    setup: Mapping[str, Any], project: str, zone: str, facts: Facts
) -> ApiError | None:
    """Return Compute Engine's error for a VM in a zone, or None if the VM can be created.

    The error appears after the operation has begun: the Notebooks API itself does not check the
    pair (discovery document of AcceleratorConfig).
    """
    machine = facts.machines.get(machine_type_of(setup))
    accelerator = first_or_empty(setup.get("acceleratorConfigs"))
    if not accelerator:
        return None
    card = card_of(accelerator, facts)
    count = int(accelerator.get("coreCount", 0))
    if card is None:
        return invalid_argument(
            "Invalid value for field 'resource.guestAccelerators[0].acceleratorType': "
            f"{accelerator.get('type', '')!r}"
        )
    zones = zones_of(card, region_of(zone))
    if card.status in ("retired", "removed") or (zones is not None and zone not in zones):
        return resource_not_found(f"projects/{project}/zones/{zone}/acceleratorTypes/{card.gcp}")
    if machine is None or not is_compatible(machine, card, count, facts):
        return invalid_argument(
            f"Invalid resource usage: '[{count} x {card.gcp}, {machine_type_of(setup)}] "
            "features are not compatible for creating instance.'."
        )
    return None


def is_compatible(machine: MachineType, card: Card, count: int, facts: Facts) -> bool:
    """Return whether a machine type has exactly these cards, or is an N1 that can attach them."""
    if machine.card:
        return machine.card == card.name and machine.gpus == count
    row = facts.attachment(card.name, count)
    return (
        machine.family == "n1"
        and row is not None
        and machine.vcpus <= row.vcpus_max
        and machine.ram_gb <= row.ram_max_gb
    )


def machine_type_of(setup: Mapping[str, Any]) -> str:
    """Return the short name of a setup's machine type."""
    return str(setup.get("machineType", DEFAULT_MACHINE)).rsplit("/", 1)[-1]


def card_of(accelerator: Mapping[str, Any], facts: Facts) -> Card | None:
    """Return the card of an AcceleratorConfig, or None."""
    kind = accelerator.get("type")
    return next((card for card in facts.cards if kind and card.workbench == kind), None)


def region_of(zone: str) -> str:
    """Return the region of a zone."""
    return zone.rsplit("-", 1)[0]


def zones_of(card: Card, region: str) -> tuple[str, ...] | None:
    """Return the zones of a region that have a card; None if only the region is known."""
    row = next(
        (row for row in load_zones() if row.card == card.name and row.region == region), None
    )
    return () if row is None else row.zones or None


def stockout_error(
    project: str, zone: str, setup: Mapping[str, Any], facts: Facts, out: frozenset[str]
) -> ApiError:
    """Return the error for a zone without capacity, with the zones of the region that have some.

    The message is Compute Engine's, as cockroachdb/cockroach tests it.
    """
    accelerator = first_or_empty(setup.get("acceleratorConfigs"))
    card = card_of(accelerator, facts)
    zones = (zones_of(card, region_of(zone)) or ()) if card else ()
    left = [other for other in zones if other != zone and other not in out]
    metadata = {
        "vmType": machine_type_of(setup),
        "zone": zone,
        "attachment": "" if card is None else f"{card.gcp}={accelerator.get('coreCount', '1')}",
        "zonesAvailable": ",".join(left),
    }
    message = (
        f"The zone 'projects/{project}/zones/{zone}' does not have enough resources available "
        "to fulfill the request."
    )
    return ApiError(
        StatusCode.RESOURCE_EXHAUSTED,
        f"{message}  Try a different zone, or try again later.",
        details=(error_info("resource_availability", "compute.googleapis.com", metadata),),
    )


def quota_metric(card: Card) -> str:
    """Return the name of the regional quota of a card: nvidia-tesla-t4 is NVIDIA_T4_GPUS."""
    return card.gcp.removesuffix("-40gb").replace("-tesla", "").replace("-", "_").upper() + "_GPUS"


def offered_cards(zone: str, facts: Facts) -> Iterator[tuple[Card, int]]:
    """Yield the cards of a zone, each with its maximum count on one machine."""
    for card in facts.cards:
        if not card.gcp or card.status in ("retired", "removed"):
            continue
        zones = zones_of(card, region_of(zone))
        if zones is None or zone in zones:
            machines = facts.machines.values()
            counts = [int(machine.gpus) for machine in machines if machine.card == card.name]
            counts += [row.gpus for row in facts.attachments if row.card == card.name]
            yield card, max(counts, default=1)
