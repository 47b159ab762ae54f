"""Machine types and images of Workbench targets, and parts of findings about them."""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.facts import Card, Facts
from provision.facts.machines import find_machines
from provision.facts.schema_platforms import MachineType
from provision.kinds import WorkbenchTarget
from provision.kinds.base import MAX_GPUS, TargetFacts
from provision.rules.rule import LintContext, related_at

RESOURCE_NAME_PATTERN = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
"""The form of most names of Compute Engine, 1 to 63 characters.

Sources: compute.v1 discovery document, Tags.items and Network.name; RFC 1035.
"""
UNAVAILABLE_STATUS = {
    "retired": "is no longer available for new machines",
    "removed": "is no longer offered",
}
"""Texts for the status of a card that Workbench does not offer any more."""


def related_kind(target: TargetFacts) -> tuple[RelatedLocation, ...]:
    """Return the location of the kind of a target."""
    return related_at(target.route_to("kind"), "target kind set here")


def shared_field_severity(context: LintContext) -> Severity | None:
    """Return WARNING if targets of other kinds may need a field of the spec, else None."""
    is_shared = any(not isinstance(target.target, WorkbenchTarget) for target in context.targets)
    return Severity.WARNING if is_shared else None


def is_available(card: Card) -> bool:
    """Return whether Workbench offers a card for new machines."""
    return bool(card.workbench) and card.status not in UNAVAILABLE_STATUS


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
