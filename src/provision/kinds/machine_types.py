"""The machine type that the target of a cloud has, from the text of its spec."""

from __future__ import annotations

from provision.facts import Facts
from provision.facts.machines import find_cpu_machines, find_machines
from provision.facts.schema_platforms import MachineType
from provision.kinds.base import TargetFacts


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
