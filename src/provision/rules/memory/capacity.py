"""What a spec's training takes of a place, and what the place has: GPU memory, RAM, shared memory
and disk, in bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from provision.diagnostics import Route, Severity
from provision.facts import Evidence
from provision.facts.machines import find_cpu_machines, find_machines
from provision.facts.memory import Workload
from provision.facts.schema_platforms import ColabShape
from provision.field_types import parse_size
from provision.kinds.models import ColabTarget, WorkbenchTarget
from provision.rules.machine_requirements import find_machine_requirement
from provision.rules.rule import LintContext
from provision.target_facts import TargetFacts, build_workload

GIB = 2**30
_STANDARD_GIB = 16
"""RAM below which a Colab machine is like the one whose /dev/shm was seen (12.7 GiB); of larger
ones nothing is said. Our choice.
"""


class Capacity(NamedTuple):
    """How much of something a place has, in bytes; whose it is, in words; the route of what chose
    that; how sure we are.
    """

    bytes: float
    provider: str
    route: Route
    evidence: Evidence

    def at_most(self, severity: Severity) -> Severity:
        """Return the gravest severity that a finding may have which rests on this."""
        return self.evidence.cap_severity(severity)


class RequiredSize(NamedTuple):
    """A size that the spec requires, in bytes, and where it is written."""

    bytes: int
    text: str
    route: Route


def format_size(count: float) -> str:
    """Return bytes as people read them: "15.4 GiB", "900 MiB"."""
    if count >= GIB:
        return f"{count / GIB:.1f} GiB"
    return f"{count / 2**20:.0f} MiB"


def training_workload(context: LintContext, target: TargetFacts) -> Workload | None:
    """Return what is trained at a place; None when the number of parameters is not given."""
    return build_workload(context.spec.training, target.gpu_settings.gpu.count)


def required_size(context: LintContext, target: TargetFacts, field: str) -> RequiredSize | None:
    """Return a size under `requires` ("ram", "vram", "shm", "disk") as it holds at a place, or
    None.
    """
    asked = find_machine_requirement(context, target, field)
    if asked:
        return RequiredSize(parse_size(asked.text), asked.text, asked.route)
    return None


def vram_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the memory of one card: what nvidia-smi shows where that was seen, else the vendor's
    figure as GiB, which is never less.
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
    """Return the memory of the machine: of a Colab shape, of a machine type, or of the largest one
    that `auto` may take; None where unknown.
    """
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
        machine = max(usable, key=lambda one: one.ram_gb, default=None)
    elif kind == "auto" and target.gpu_settings.gpu.is_none:
        machine = max(find_cpu_machines(context.facts), key=lambda one: one.ram_gb, default=None)
    if machine:
        return Capacity(machine.ram_gb * GIB, machine.name, route, machine.evidence)
    return None


def shm_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the size of /dev/shm, a share of the RAM on a machine and what was seen on Colab; None
    where unknown.
    """
    if isinstance(target.target, ColabTarget):
        seen = context.facts.conditions["shm"]
        standard = (
            target.target.shape == "standard"
            and (shape := colab_shape(context, target)) is not None
            and shape.ram_gib
            and shape.ram_gib < _STANDARD_GIB
        )
        if standard:
            return Capacity(
                float(seen.value) * GIB,
                "a Colab machine of standard shape",
                (*target.route, "shape"),
                seen.evidence,
            )
        return None
    of, share = ram_capacity(context, target), context.facts.limits["shm share"]
    if of:
        return Capacity(of.bytes * share.value, of.provider, of.route, share.evidence)
    return None


def disk_capacity(context: LintContext, target: TargetFacts) -> Capacity | None:
    """Return the size of the disk that environments, data and checkpoints lie on; None where
    unknown.
    """
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
    """Return the Colab machine of a target, or the one of another shape; None when it has no row."""  # noqa: E501
    if not isinstance(target.target, ColabTarget):
        return None
    if target.card:
        card = target.card.name
    elif not target.gpu_settings.is_nvidia:
        card = "none"
    else:
        card = ""
    rows = {row.shape: row for row in context.facts.shapes if row.card == card}
    # A card that is offered in one shape only is that shape, whatever the notebook asks for.
    return rows.get(shape or target.target.shape) or (
        next(iter(rows.values())) if len(rows) == 1 and shape is None else None
    )


def _named(shape: ColabShape) -> str:
    card = "without a GPU" if shape.card == "none" else f"with {shape.card}"
    return f"a Colab machine {card}, {shape.shape} shape"
