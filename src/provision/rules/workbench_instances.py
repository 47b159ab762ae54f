"""The Workbench targets of a spec, and the machine types and images that they can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts import Card, Facts
from provision.facts.machines import find_machines
from provision.facts.schema_platforms import MachineType
from provision.kinds import WorkbenchTarget
from provision.kinds.base import MAX_GPUS, TargetFacts
from provision.rules.rule import LintContext

RESOURCE_NAME_PATTERN = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
"""The form of most names of Compute Engine, 1 to 63 characters.

Sources: compute.v1 discovery document, Tags.items and Network.name; RFC 1035.
"""
UNAVAILABLE_STATUS = {
    "retired": "is no longer given to new machines",
    "removed": "is no longer there",
}
"""Texts for the status of a card that Workbench does not offer any more."""


class WorkbenchTargetFacts(NamedTuple):
    """A Workbench target and its facts."""

    facts: TargetFacts
    target: WorkbenchTarget

    def route(self, *parts: str | int) -> Route:
        """Return the route of a field of the target."""
        return (*self.facts.route, *parts)

    @property
    def reserved(self) -> bool:
        """True if the machine comes from a reservation."""
        return self.target.reservation is not None


def workbench_instances(context: LintContext) -> Iterator[WorkbenchTargetFacts]:
    """Yield every Workbench target."""
    for target in context.targets:
        if isinstance(target.target, WorkbenchTarget):
            yield WorkbenchTargetFacts(target, target.target)


def newest_image_family(facts: Facts) -> str:
    """Return the family of the newest Workbench images."""
    images = facts.images.values()
    current = (image for image in images if image.kind == "workbench" and not image.legacy)
    return max(current, key=lambda image: image.released).family


def available_gpu_counts(facts: Facts, card: Card, *, reserved: bool) -> tuple[int, ...]:
    """Return the numbers of a card that a Workbench instance can have."""
    return tuple(
        count
        for count in range(1, MAX_GPUS + 1)
        if find_machines(facts, card, count, reserved=reserved)
    )


def nearest_machine(machines: tuple[MachineType, ...], to: MachineType) -> MachineType | None:
    """Return the machine with the nearest vCPUs, the larger of two, and then memory per vCPU."""
    return min(
        machines,
        key=lambda machine: (
            abs(machine.vcpus - to.vcpus),
            -machine.vcpus,
            abs(machine.ram_gb / machine.vcpus - to.ram_gb / to.vcpus),
        ),
        default=None,
    )
