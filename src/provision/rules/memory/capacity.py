"""The memory that a spec's training requires and the capacity of a target's machine, in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from provision.diagnostics import Route
from provision.facts.memory import Workload
from provision.field_types import parse_size
from provision.kinds.base import Capacity, Resource, TargetFacts
from provision.rules.machine_requirements import find_machine_requirement
from provision.rules.rule import LintContext
from provision.target_facts import build_workload, gpu_memory

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


def unmet_sizes(
    context: LintContext, resource: Resource | Literal["vram"], *, usable_share: float = 1
) -> Iterator[tuple[TargetFacts, RequiredSize, Capacity]]:
    """Yield each target whose capacity is below its requirement.

    Args:
        context: the spec with its facts.
        resource: the key under `requires`.
        usable_share: share of the required size that is enough.
    """
    for target in context.targets:
        required = find_machine_requirement(context, target, resource)
        capacity = capacity_of(context, target, resource) if required else None
        if required is None or capacity is None:
            continue
        size = parse_size(required.text)
        if capacity.bytes < size * usable_share:
            yield target, RequiredSize(size, required.text, required.route), capacity


def capacity_of(
    context: LintContext, target: TargetFacts, resource: Resource | Literal["vram"]
) -> Capacity | None:
    """Return the size of a resource of the machine, or of the GPU's memory, None if unknown."""
    if resource == "vram":
        return gpu_memory(target, context.facts)
    return target.kind.capacity(resource, target, context.facts)
