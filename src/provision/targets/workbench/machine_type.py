"""Choice of the machine type of an instance, and its price by the tables."""

from __future__ import annotations

from typing import NamedTuple

from provision.facts import Card, Facts
from provision.facts.machines import (
    MachineOffer,
    cheapest_offer,
    find_cpu_machines,
    find_machines,
    list_offers,
    region_of,
)
from provision.facts.schema_platforms import MachineType
from provision.field_types import parse_size
from provision.kinds import WorkbenchTarget
from provision.spec import Spec

_LEAST_RAM_GB = 8.0
"""Memory of a machine without a card if the spec requires none: for Jupyter, torch and a small
model. Our choice.
"""


class MachineChoice(NamedTuple):
    """A machine type with its price in the first zone's region; or a problem."""

    machine_type: str
    offer: MachineOffer | None = None
    problem: str = ""

    @property
    def price(self) -> str:
        """The price in words, with the day it was read on."""
        return "price not known" if self.offer is None else format_price(self.offer)


def format_price(offer: MachineOffer) -> str:
    """Return the hourly price of a machine, with the day it was read on."""
    read = offer.evidence.as_of
    return f"${offer.dollars:.2f} an hour in {offer.region} ({read}), without disks and traffic"


def choose_machine(
    spec: Spec, target: WorkbenchTarget, facts: Facts, card: Card | None
) -> MachineChoice:
    """Return the named machine type, else the cheapest with the GPUs and the memory."""
    cards, region = (spec.gpu.count if card else 0), region_of(target.zones[0])
    if target.machine_type != "auto":
        named = facts.machines.get(target.machine_type)
        known = list_offers((named,), card, cards) if named else ()
        return MachineChoice(target.machine_type, cheapest_offer(known, region) if known else None)
    if card:
        able = find_machines(facts, card, cards, reserved=target.reservation is not None)
        least = 0.0
    else:
        able = find_cpu_machines(facts)
        least = float(_LEAST_RAM_GB)
    if spec.requires.ram:
        least = parse_size(spec.requires.ram) / 2**30
    fit = tuple(machine for machine in able if machine.ram_gb >= least)
    if not fit:
        return MachineChoice("", problem=_no_machine_reason(spec, able, least))
    best = cheapest_offer(list_offers(fit, card, cards), region)
    return MachineChoice(best.machine.name, best) if best else MachineChoice(fit[0].name)


def _no_machine_reason(spec: Spec, able: tuple[MachineType, ...], least: float) -> str:
    if not able:
        return f"no machine type that Workbench has carries {spec.gpu}"
    most = max(machine.ram_gb for machine in able)
    return f"no machine type with {spec.gpu} has {least:g} GiB of memory; the largest has {most:g}"
