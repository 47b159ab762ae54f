"""Demand of a spec's training and capacity of a target's machine, in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts.memory import Workload
from provision.field_types import parse_size
from provision.kinds.base import Capacity, TargetFacts
from provision.rules.machine_requirements import find_machine_requirement
from provision.rules.rule import LintContext
from provision.target_facts import build_workload

GIB = 2**30


class RequiredSize(NamedTuple):
    """A size that the spec requires, in bytes and as written, and its route."""

    bytes: int
    text: str
    route: Route


def format_size(count: float) -> str:
    """Return bytes as text: "15.4 GiB", "900 MiB"."""
    if count >= GIB:
        return f"{count / GIB:.1f} GiB"
    return f"{count / 2**20:.0f} MiB"


def training_workload(context: LintContext, target: TargetFacts) -> Workload | None:
    """Return the training at a target, None without a number of parameters."""
    return build_workload(context.spec.training, target.gpu_settings.gpu.count)


def required_size(context: LintContext, target: TargetFacts, field: str) -> RequiredSize | None:
    """Return a size under `requires` ("ram", "vram", "shm", "disk") as it applies to a target."""
    required = find_machine_requirement(context, target, field)
    if required is None:
        return None
    return RequiredSize(parse_size(required.text), required.text, required.route)


def unmet_sizes(
    context: LintContext,
    field: str,
    capacity_of: Callable[[LintContext, TargetFacts], Capacity | None],
    *,
    usable_share: float = 1,
) -> Iterator[tuple[TargetFacts, RequiredSize, Capacity]]:
    """Yield each target whose capacity is below its requirement.

    Args:
        context: the spec with its facts.
        field: the key under `requires`.
        capacity_of: returns the capacity of a target; None if it is unknown.
        usable_share: share of the required size that is enough.
    """
    for target in context.targets:
        required = required_size(context, target, field)
        capacity = capacity_of(context, target) if required else None
        if required and capacity and capacity.bytes < required.bytes * usable_share:
            yield target, required, capacity


def vram_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the memory of one card, None for an unknown card.

    nvidia-smi's figure if it was seen, else the vendor's as GiB, which is never less.
    """
    card = target.card
    route = target.gpu_settings.gpu_route
    if card is None:
        return None
    for shape in context.facts.shapes:
        if shape.card == card.name and shape.vram_mib:
            return Capacity(shape.vram_mib * 2**20, card.name, route, shape.evidence)
    return Capacity(card.memory_gb * GIB, card.name, route, card.evidence)


def ram_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the memory of the machine, None if unknown."""
    return target.kind.capacity("ram", target, context.facts)


def shm_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the size of /dev/shm, None if unknown."""
    return target.kind.capacity("shm", target, context.facts)


def disk_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the size of the disk for environments, data and checkpoints, None if unknown."""
    return target.kind.capacity("disk", target, context.facts)
