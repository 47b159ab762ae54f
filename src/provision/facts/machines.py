"""Machine types that have a card on Workbench, and their hourly prices."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from provision.facts.evidence import Evidence
from provision.facts.facts import Facts
from provision.facts.schema_platforms import GpuAttachment, MachineType
from provision.facts.schema_torch import Card

REGION_PATTERN = re.compile(r"[a-z]+-[a-z]+[0-9]+")
ZONE_PATTERN = re.compile(rf"{REGION_PATTERN.pattern}-[a-z]")
"""A region, a hyphen and a letter (Compute Engine documentation, Regions and zones)."""


_LEAST_RAM_GIB = 8.0
"""RAM of a machine without a card if the spec requires none: for Jupyter, torch and a small
model. Our choice.
"""


class MachineOffer(NamedTuple):
    """A machine with its GPUs in a region, and its price in US dollars an hour on demand."""

    machine: MachineType
    region: str
    dollars: float
    evidence: Evidence


class MachineSelection(NamedTuple):
    """The machine type chosen among the `able` ones with `least_gib` of RAM, None if none fits."""

    able: tuple[MachineType, ...]
    least_gib: float
    machine: MachineType | None = None
    offer: MachineOffer | None = None

    @property
    def fit(self) -> tuple[MachineType, ...]:
        """The machine types with enough RAM."""
        return tuple(machine for machine in self.able if machine.ram_gb >= self.least_gib)


def region_of(zone: str) -> str:
    """Return the region of a zone ("us-central1" for "us-central1-a"), or a region itself."""
    return zone.rpartition("-")[0] if ZONE_PATTERN.fullmatch(zone) else zone


def find_machines(
    facts: Facts, card: Card, count: int, *, reserved: bool
) -> tuple[MachineType, ...]:
    """Return the machine types on which Workbench offers that many cards, the smallest first.

    Machines with built-in cards come before N1 machines with attached cards.
    """
    return _find_machines(facts, card.name, count, reserved=reserved)


@lru_cache(maxsize=1024)
def _find_machines(
    facts: Facts, card: str, count: int, *, reserved: bool
) -> tuple[MachineType, ...]:
    machines = [
        machine
        for machine in facts.machines_with(card, count)
        if not unavailability_reason(machine, reserved=reserved)
    ]
    attachment = facts.attachment(card, count)
    if attachment is not None:
        n1 = (machine for machine in facts.machines.values() if machine.family == "n1")
        fitting = (machine for machine in n1 if fits_attachment(machine, attachment))
        machines += sorted(fitting, key=lambda machine: (machine.vcpus, machine.ram_gb))
    return tuple(machines)


def find_cpu_machines(facts: Facts) -> tuple[MachineType, ...]:
    """Return the machine types without built-in cards, the smallest first."""
    machines = (
        machine
        for machine in facts.machines.values()
        if not machine.gpus and not unavailability_reason(machine, reserved=False)
    )
    return tuple(
        sorted(machines, key=lambda machine: (machine.vcpus, machine.ram_gb, machine.name))
    )


def fits_attachment(machine: MachineType, attachment: GpuAttachment) -> bool:
    """Return whether an N1 machine is small enough for the attached cards."""
    return machine.vcpus <= attachment.vcpus_max and machine.ram_gb <= attachment.ram_max_gb


def describe_gpu_mismatch(facts: Facts, machine: MachineType, card: Card, count: int) -> str:
    """Return why a machine type cannot have that many cards, or "" if it can."""
    if machine.gpus:
        if (machine.card, machine.gpus) == (card.name, count):
            return ""
        return f"has {machine.gpus:g} x {machine.card}"
    counts = [row.gpus for row in facts.attachments if row.card == card.name]
    if machine.family != "n1":
        needed = "an N1 machine type" if counts else "a machine type with a built-in GPU"
        return f"has no GPU; {card.name} requires {needed}"
    attached = facts.attachment(card.name, count)
    if attached is None:
        if counts:
            return f"supports only {', '.join(map(str, counts))} x {card.name}"
        return "is an N1 type, which does not support this GPU"
    if fits_attachment(machine, attached):
        return ""
    return (
        f"has {machine.vcpus} vCPUs and {machine.ram_gb:g} GiB; the limit is {attached.vcpus_max} "
        f"vCPUs and {attached.ram_max_gb:g} GiB"
    )


def unavailability_reason(machine: MachineType, *, reserved: bool) -> str:
    """Return why Workbench cannot use a machine type, or "" if it can.

    Workbench supports neither Spot nor Google's vGPU driver.
    """
    if machine.only == "reservation":
        return "" if reserved else "with a reservation only"
    return {
        "spot": "as Spot or Flex-start only, which Workbench does not support",
        "vgpu": "as a share of a GPU that needs the vGPU driver",
    }.get(machine.only, "")


def choose_machine_type(
    facts: Facts,
    card: Card | None,
    count: int,
    region: str,
    ram_gib: float | None,
    *,
    reserved: bool,
) -> MachineSelection:
    """Return the cheapest machine type that Workbench has in a region for `machine_type: auto`.

    Args:
        facts: the tables to look up.
        card: the GPU, None for the CPU.
        count: GPUs in the machine.
        region: region of the prices.
        ram_gib: the required RAM in GiB, None if the spec requires none.
        reserved: whether machines that need a reservation count.
    """
    if card:
        able, least = find_machines(facts, card, count, reserved=reserved), 0.0
    else:
        able, least = find_cpu_machines(facts), _LEAST_RAM_GIB
    least = least if ram_gib is None else ram_gib
    fit = MachineSelection(able, least).fit
    if not fit:
        return MachineSelection(able, least)
    best = cheapest_offer(list_offers(fit, card, count), region)
    return MachineSelection(able, least, best.machine if best else fit[0], best)


def list_offers(
    machines: Iterable[MachineType], card: Card | None, count: int
) -> tuple[MachineOffer, ...]:
    """Return the known prices of machine types with that many cards, built in or attached."""
    # Imported here: it is a large table that few commands need.
    from provision.facts.lazy_tables import load_prices_by_item

    prices = load_prices_by_item()
    machine_types = {machine.name: machine for machine in machines}
    attached = {
        price.region: price.on_demand * count
        for _, price in prices.get("gpu-attached-to-n1", ())
        if card and price.card == card.name
    }
    offers = []
    for _, price in sorted(row for name in machine_types for row in prices.get(name, ())):
        machine = machine_types[price.item]
        dollars = price.on_demand
        if card is not None and not machine.gpus:
            if price.region not in attached:
                continue
            dollars += attached[price.region]
        offers.append(MachineOffer(machine, price.region, dollars, price.evidence))
    return tuple(offers)


def cheapest_offer(offers: Iterable[MachineOffer], region: str = "") -> MachineOffer | None:
    """Return the cheapest offer, in one region if it is named; None if there is none."""
    return min(
        (offer for offer in offers if region in ("", offer.region)),
        key=lambda offer: (offer.dollars, offer.machine.name),
        default=None,
    )
