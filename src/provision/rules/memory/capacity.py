"""GPU memory, RAM, shared memory and disk in bytes: what a spec requires, and what a target has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from provision.diagnostics import Route, Severity
from provision.facts import Evidence
from provision.facts.machines import find_cpu_machines, find_machines
from provision.facts.memory import Workload
from provision.facts.schema_platforms import ColabShape, MachineType
from provision.field_types import parse_size
from provision.kinds.models import ColabTarget, WorkbenchTarget
from provision.rules.machine_requirements import find_machine_requirement
from provision.rules.rule import LintContext
from provision.target_facts import TargetFacts, build_workload

GIB = 2**30
_STANDARD_GIB = 16
"""Up to this RAM, a Colab machine is taken to have the /dev/shm that one of 12.7 GiB has."""


class Capacity(NamedTuple):
    """The bytes that a target has, their provider, and the route that chose the provider."""

    bytes: float
    provider: str
    route: Route
    evidence: Evidence

    def at_most(self, severity: Severity) -> Severity:
        """Return a severity, lowered if the evidence is weak."""
        return self.evidence.cap_severity(severity)


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
    """Return what is trained at a target; None if the number of parameters is not given."""
    return build_workload(context.spec.training, target.gpu_settings.gpu.count)


def required_size(context: LintContext, target: TargetFacts, field: str) -> RequiredSize | None:
    """Return the size under `requires` ("ram", "vram", "shm", "disk") of a target, or None."""
    requirement = find_machine_requirement(context, target, field)
    if requirement is None:
        return None
    return RequiredSize(parse_size(requirement.text), requirement.text, requirement.route)


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
    """Return the memory of one card: what nvidia-smi shows, or else the vendor's figure as GiB.

    The vendor's figure is never less.
    """
    card = target.card
    if card is None:
        return None
    seen = next(
        (shape for shape in context.facts.shapes if shape.card == card.name and shape.vram_mib),
        None,
    )
    if seen is not None and seen.vram_mib is not None:
        return Capacity(
            seen.vram_mib * 2**20, card.name, target.gpu_settings.gpu_route, seen.evidence
        )
    return Capacity(card.memory_gb * GIB, card.name, target.gpu_settings.gpu_route, card.evidence)


def ram_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the RAM of a Colab shape, a machine type, or the largest that `auto` may take."""
    if isinstance(target.target, ColabTarget):
        shape = colab_shape(context, target)
        if shape and shape.ram_gib:
            return Capacity(
                shape.ram_gib * GIB, _named(shape), (*target.route, "shape"), shape.evidence
            )
        return None
    if not isinstance(target.target, WorkbenchTarget):
        return None
    kind, route = target.target.machine_type, (*target.route, "machine_type")
    machine = context.facts.machines.get(kind)
    if kind == "auto" and target.card is not None:
        usable = find_machines(
            context.facts,
            target.card,
            target.gpu_settings.gpu.count,
            reserved=target.target.reservation is not None,
        )
        machine = max(usable, key=_ram_gb, default=None)
    elif kind == "auto" and target.gpu_settings.gpu.is_none:
        machine = max(find_cpu_machines(context.facts), key=_ram_gb, default=None)
    if machine:
        return Capacity(machine.ram_gb * GIB, machine.name, route, machine.evidence)
    return None


def shm_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the size of /dev/shm, a share of the RAM except on Colab; None if unknown."""
    if isinstance(target.target, ColabTarget):
        shape = colab_shape(context, target)
        ram_gib = shape.ram_gib if shape else None
        if target.target.shape != "standard" or not ram_gib or ram_gib >= _STANDARD_GIB:
            return None
        seen = context.facts.conditions["shm"]
        return Capacity(
            float(seen.value) * GIB,
            "a Colab machine of standard shape",
            (*target.route, "shape"),
            seen.evidence,
        )
    ram, share = ram_capacity(context, target), context.facts.limits["shm share"]
    if ram is None:
        return None
    return ram._replace(bytes=ram.bytes * share.value, evidence=share.evidence)


def disk_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the size of the disk with environments, data and checkpoints; None if unknown."""
    if isinstance(target.target, ColabTarget):
        shape = colab_shape(context, target)
        if shape and shape.disk_gb:
            return Capacity(
                shape.disk_gb * 10**9, _named(shape), target.gpu_settings.gpu_route, shape.evidence
            )
        return None
    if not isinstance(target.target, WorkbenchTarget):
        return None
    usual, own = context.facts.limits["data disk"], target.target.data_disk.size
    return Capacity(
        parse_size(own) if own else usual.value * 10**9,
        "the data disk",
        (*target.route, "data_disk"),
        usual.evidence,
    )


def colab_shape(
    context: LintContext, target: TargetFacts, shape: str | None = None
) -> ColabShape | None:
    """Return the Colab machine of a target, or of another shape; None if it is unknown."""
    if not isinstance(target.target, ColabTarget):
        return None
    card = "" if target.gpu_settings.is_nvidia else "none"
    if target.card:
        card = target.card.name
    rows = {row.shape: row for row in context.facts.shapes if row.card == card}
    if len(rows) == 1 and shape is None:
        # A card with a single shape has that shape, whatever the notebook requests.
        return next(iter(rows.values()))
    return rows.get(shape or target.target.shape)


def _ram_gb(machine: MachineType) -> float:
    return machine.ram_gb


def _named(shape: ColabShape) -> str:
    card = "without a GPU" if shape.card == "none" else f"with {shape.card}"
    return f"a Colab machine {card}, {shape.shape} shape"
