"""Which machine types carry a card, what keeps Workbench from having one, and what they cost an
hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from provision.facts.facts import Facts
from provision.facts.schema_platforms import GpuAttachment, MachineType
from provision.facts.schema_torch import Card, Evidence

REGION_PATTERN = re.compile(r"[a-z]+-[a-z]+[0-9]+")
ZONE_PATTERN = re.compile(rf"{REGION_PATTERN.pattern}-[a-z]")
"""A region, a hyphen and a letter (Compute Engine documentation, Regions and zones)."""


class MachineOffer(NamedTuple):
    """A machine with its GPUs in a region, in US dollars an hour on demand."""

    machine: MachineType
    region: str
    dollars: float
    evidence: Evidence


def region_of(zone: str) -> str:
    """Return the region of a zone: "us-central1" for "us-central1-a", and for itself."""
    return zone.rpartition("-")[0] if ZONE_PATTERN.fullmatch(zone) else zone


def find_machines(
    facts: Facts, card: Card, count: int, *, reserved: bool
) -> tuple[MachineType, ...]:
    """Return the machine types on which Workbench gives that many cards, the smallest first: their
    own cards, or attached to N1.
    """
    own = tuple(
        machine
        for machine in facts.machines_with(card.name, count)
        if not unavailability_reason(machine, reserved=reserved)
    )
    attached = facts.attachment(card.name, count)
    if attached is None:
        return own
    n1 = (
        machine
        for machine in facts.machines.values()
        if machine.family == "n1" and fits_attachment(machine, attached)
    )
    return (*own, *sorted(n1, key=lambda machine: (machine.vcpus, machine.ram_gb)))


def find_cpu_machines(facts: Facts) -> tuple[MachineType, ...]:
    """Return the machine types without a card of their own, the smallest first."""
    rows = (
        machine
        for machine in facts.machines.values()
        if not machine.gpus and not unavailability_reason(machine, reserved=False)
    )
    return tuple(sorted(rows, key=lambda machine: (machine.vcpus, machine.ram_gb, machine.name)))


def fits_attachment(machine: MachineType, attached: GpuAttachment) -> bool:
    """Tell whether an N1 machine is no larger than those cards allow."""
    return machine.vcpus <= attached.vcpus_max and machine.ram_gb <= attached.ram_max_gb


def unavailability_reason(machine: MachineType, *, reserved: bool) -> str:
    """Return why Workbench cannot have a machine type ("" when it can): it has neither Spot nor
    Google's vGPU driver.
    """
    if machine.only == "reservation":
        return "" if reserved else "with a reservation only"
    return {
        "spot": "as Spot or Flex-start only, which Workbench does not have",
        "vgpu": "as a share of a card that needs the vGPU driver",
    }.get(machine.only, "")


def list_offers(
    machines: Iterable[MachineType], card: Card | None, count: int
) -> tuple[MachineOffer, ...]:
    """Return all prices that are known of these machine types with that many cards, whether they
    carry them or have them attached.
    """
    from provision.facts.lazy_tables import load_prices  # here: few questions need the table

    rows = load_prices()
    attached = {
        row.region: row.on_demand
        for row in rows
        if card and row.item == "gpu-attached-to-n1" and row.card == card.name
    }
    by_name = {one.name: one for one in machines}
    found = (
        MachineOffer(by_name[row.item], row.region, row.on_demand, row.evidence)
        for row in rows
        if row.item in by_name
    )
    return tuple(
        _with_cards(offer, attached, count)
        for offer in found
        if offer.machine.gpus or card is None or offer.region in attached
    )


def cheapest_offer(found: Iterable[MachineOffer], region: str = "") -> MachineOffer | None:
    """Return the cheapest offer, in one region where one is named; None when there is none."""
    return min(
        (offer for offer in found if region in ("", offer.region)),
        key=lambda offer: (offer.dollars, offer.machine.name),
        default=None,
    )


def _with_cards(offer: MachineOffer, attached: dict[str, float], count: int) -> MachineOffer:
    extra = 0.0 if offer.machine.gpus else attached.get(offer.region, 0.0) * count
    return MachineOffer(offer.machine, offer.region, offer.dollars + extra, offer.evidence)
