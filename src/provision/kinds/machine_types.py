"""The machine type that the target of a cloud has, from the text of its spec."""

from __future__ import annotations

from collections.abc import Iterable

from provision.facts import Facts
from provision.facts.machines import (
    MachineOffer,
    cheapest_offer,
    choose_machine_type,
    find_cpu_machines,
    find_machines,
    list_offers,
)
from provision.facts.schema_platforms import MachineType
from provision.kinds.base import TargetFacts
from provision.kinds.settings import LargerMachine


def find_largest_machine(
    machine_type: str, target: TargetFacts, facts: Facts, *, reserved: bool
) -> MachineType | None:
    """Return the machine type, for `auto` the one with the most RAM that it may choose."""
    if machine_type != "auto":
        return facts.machines.get(machine_type)
    machines: tuple[MachineType, ...] = ()
    if target.card is not None:
        count = target.gpu_settings.gpu.count
        machines = find_machines(facts, target.card, count, reserved=reserved)
    elif target.gpu_settings.gpu.is_none:
        machines = find_cpu_machines(facts)
    return max(machines, key=lambda machine: machine.ram_gb, default=None)


def resolve_machine_type(
    machine_type: str,
    region: str,
    ram_gib: float | None,
    target: TargetFacts,
    facts: Facts,
    *,
    reserved: bool,
) -> str:
    """Return the machine type that `apply` requests in a region; "auto" if none fits."""
    if machine_type != "auto":
        return machine_type
    count = target.gpu_settings.gpu.count
    chosen = choose_machine_type(facts, target.card, count, region, ram_gib, reserved=reserved)
    return machine_type if chosen.machine is None else chosen.machine.name


def find_offer(
    machine_type: str, region: str, target: TargetFacts, facts: Facts
) -> MachineOffer | None:
    """Return a machine type with the target's GPUs, and its price in a region; None if unknown."""
    machine = facts.machines.get(machine_type)
    if machine is None:
        return None
    offers = list_offers((machine,), target.card, target.gpu_settings.gpu.count)
    return cheapest_offer(offers, region)


def find_machine_with_ram(
    ram_gib: float, machine_type: str, target: TargetFacts, facts: Facts, *, reserved: bool
) -> LargerMachine | None:
    """Return the smallest machine type with the GPUs, or of the same family without one."""
    if target.card is not None:
        count = target.gpu_settings.gpu.count
        machines = find_machines(facts, target.card, count, reserved=reserved)
    else:
        family = machine_type.split("-", 1)[0]
        machines = tuple(
            row for row in facts.machines.values() if not row.gpus and row.family == family
        )
    return find_smallest_machine(machines, ram_gib)


def find_smallest_machine(machines: Iterable[MachineType], ram_gib: float) -> LargerMachine | None:
    """Return the smallest of some machine types with an amount of RAM; None if none has it."""
    machine = min(
        (machine for machine in machines if machine.ram_gb >= ram_gib),
        key=lambda machine: (machine.ram_gb, machine.vcpus),
        default=None,
    )
    if machine is None:
        return None
    return LargerMachine("machine_type", machine.name, machine.ram_gb)
