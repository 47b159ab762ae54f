"""The values under `requires` that apply to a target, and the drivers of its card."""

from __future__ import annotations

from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Route
from provision.facts import Card
from provision.facts.compatibility import is_driver_at_least
from provision.facts.versions import has_version_in_range
from provision.kinds.base import TargetFacts
from provision.rules.package_lines import MAX_SPECIFIER_LENGTH
from provision.rules.rule import LintContext


class MachineRequirement(NamedTuple):
    """A value under `requires` that applies to a target, and its route."""

    text: str
    route: Route


class VersionRequirement(NamedTuple):
    """A requirement of versions, as text and as specifiers."""

    text: str
    route: Route
    specifiers: SpecifierSet


class DriverBranches(NamedTuple):
    """The driver branches that support a card, from `first` to `last`; None for no limit."""

    first: str | None
    last: str | None

    @property
    def first_unsupported(self) -> str | None:
        """The first branch that does not support the card any more."""
        return str(int(self.last) + 1) if self.last else None

    def includes(self, branch: str) -> bool:
        """Return whether a branch such as "535" supports the card."""
        return (not self.first or int(self.first) <= int(branch)) and (
            not self.last or int(branch) <= int(self.last)
        )

    def admits(self, specifiers: SpecifierSet) -> bool:
        """Return whether a driver that supports the card satisfies the specifiers."""
        return has_version_in_range(specifiers, self.first or "0", self.first_unsupported)

    def __str__(self) -> str:
        """Return a text such as "525 or newer"."""
        if self.last is None:
            return f"{self.first} or newer"
        return f"{self.first} to {self.last}" if self.first else f"{self.last} or older"


def find_machine_requirement(
    context: LintContext, target: TargetFacts, key: str
) -> MachineRequirement | None:
    """Return a requirement of a target, or else of the spec."""
    for requires, route in ((target.target.requires, target.route), (context.spec.requires, ())):
        text = getattr(requires, key, None)
        if text is not None:
            return MachineRequirement(text, (*route, "requires", key))
    return None


def find_version_requirement(
    context: LintContext, target: TargetFacts, key: str
) -> VersionRequirement | None:
    """Return a requirement of versions; None if it is missing, or too long to compare."""
    requirement = find_machine_requirement(context, target, key)
    if requirement is None or len(requirement.text) > MAX_SPECIFIER_LENGTH:
        return None
    return VersionRequirement(*requirement, SpecifierSet(requirement.text))


def driver_branches(context: LintContext, card: Card) -> DriverBranches:
    """Return the driver branches that support a card."""
    last = context.facts.last_driver_branch(card)
    capability = context.facts.capabilities.get(card.cc)
    return DriverBranches(
        capability.first_driver if capability else None, last.branch if last else None
    )


def describe_image_with_driver(context: LintContext, target: TargetFacts, floor: str) -> str:
    """Return a help text with the most similar image whose driver is new enough, or ""."""
    image = target.image
    if image is None:
        return ""
    rows = [
        row
        for row in context.facts.images.values()
        if row.kind == image.kind and row.driver and is_driver_at_least(row.driver, floor)
    ]
    rows.sort(key=lambda row: (row.legacy, row.os != image.os, row.family))
    if rows:
        return f"use the image {rows[0].family}, which has driver {rows[0].driver}"
    return ""
