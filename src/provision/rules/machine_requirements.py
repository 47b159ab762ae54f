"""What `requires` asks of a place, and which drivers its card has."""

from __future__ import annotations

from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Route
from provision.facts import Card
from provision.facts.compatibility import is_driver_at_least
from provision.facts.versions import has_version_in_range
from provision.rules.package_lines import MAX_SPECIFIER_LENGTH
from provision.rules.rule import LintContext
from provision.target_facts import TargetFacts


class MachineRequirement(NamedTuple):
    """A value under `requires` that holds at a place, and where it is written."""

    text: str
    route: Route

    @property
    def specifiers(self) -> SpecifierSet | None:
        """The value as version specifiers; None when it is too long to reason about."""
        return SpecifierSet(self.text) if len(self.text) <= MAX_SPECIFIER_LENGTH else None


class DriverBranches(NamedTuple):
    """The driver branches that know a card: from `first` to `last`, None for no bound."""

    first: str | None
    last: str | None

    @property
    def first_unsupported(self) -> str | None:
        """The first branch that does not know the card any more."""
        return str(int(self.last) + 1) if self.last else None

    def admits(self, specifiers: SpecifierSet) -> bool:
        """Tell whether some driver of these branches satisfies specifiers."""
        return has_version_in_range(specifiers, self.first or "0", self.first_unsupported)

    def __str__(self) -> str:
        """Return the branches in words."""
        parts = [
            f"from {self.first} on" if self.first else "",
            f"up to {self.last}" if self.last else "",
        ]
        return " ".join(part for part in parts if part)


def find_machine_requirement(
    context: LintContext, target: TargetFacts, key: str
) -> MachineRequirement | None:
    """Return what a place's own `requires`, or else the spec's, says under `key`."""
    if (
        target.target.requires is not None
        and (own := getattr(target.target.requires, key)) is not None
    ):
        return MachineRequirement(own, (*target.route, "requires", key))
    text = getattr(context.spec.requires, key)
    return None if text is None else MachineRequirement(text, ("requires", key))


def driver_branches(context: LintContext, card: Card) -> DriverBranches:
    """Return the driver branches that know a card."""
    last, capability = (
        context.facts.last_driver_branch(card),
        context.facts.capabilities.get(card.cc),
    )
    return DriverBranches(
        capability.first_driver if capability else None, last.branch if last else None
    )


def describe_image_with_driver(context: LintContext, target: TargetFacts, floor: str) -> str:
    """Return "take the image FAMILY, which brings driver X" for the image most like a place's whose
    driver is new enough; "" where there is none.
    """
    image = target.image
    if image is None:
        return ""
    rows = [
        row
        for row in context.facts.images.values()
        if row.kind == image.kind and row.driver and is_driver_at_least(row.driver, floor)
    ]
    rows.sort(key=lambda row: (row.legacy, row.os != image.os, row.family))
    return f"take the image {rows[0].family}, which brings driver {rows[0].driver}" if rows else ""
