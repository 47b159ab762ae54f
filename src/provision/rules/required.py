"""What `requires` asks of a place, and which drivers its card has."""

from __future__ import annotations

from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Route
from provision.facts import Card
from provision.facts.coverage import at_least
from provision.facts.versions import reaches
from provision.rules.lines import LONGEST_BOUNDS
from provision.rules.rule import Case
from provision.sites import Site


class Need(NamedTuple):
    """A value under `requires` that holds at a place, and where it is written."""

    text: str
    route: Route

    @property
    def specifiers(self) -> SpecifierSet | None:
        """The value as version specifiers; None when it is too long to reason about."""
        return SpecifierSet(self.text) if len(self.text) <= LONGEST_BOUNDS else None


class Branches(NamedTuple):
    """The driver branches that know a card: from `first` to `last`, None for no bound."""

    first: str | None
    last: str | None

    @property
    def below(self) -> str | None:
        """The first branch that does not know the card any more."""
        return str(int(self.last) + 1) if self.last else None

    def admit(self, specifiers: SpecifierSet) -> bool:
        """Tell whether some driver of these branches satisfies specifiers."""
        return reaches(specifiers, self.first or "0", self.below)

    def __str__(self) -> str:
        """Return the branches in words."""
        parts = [f"from {self.first} on" if self.first else "", f"up to {self.last}" if self.last else ""]
        return " ".join(part for part in parts if part)


def need(case: Case, site: Site, key: str) -> Need | None:
    """Return what a place's own `requires`, or else the spec's, says under `key`."""
    if site.target.requires is not None and (own := getattr(site.target.requires, key)) is not None:
        return Need(own, (*site.route, "requires", key))
    text = getattr(case.spec.requires, key)
    return None if text is None else Need(text, ("requires", key))


def branches(case: Case, card: Card) -> Branches:
    """Return the driver branches that know a card."""
    last, capability = case.facts.driver_ceiling(card), case.facts.capabilities.get(card.cc)
    return Branches(capability.first_driver if capability else None, last.branch if last else None)


def image_with_driver(case: Case, site: Site, floor: str) -> str:
    """Return "take the image FAMILY, which brings driver X" for the image most like a place's whose driver is new enough; "" where there is none."""
    image = site.image
    if image is None:
        return ""
    rows = [row for row in case.facts.images.values() if row.kind == image.kind and row.driver and at_least(row.driver, floor)]
    rows.sort(key=lambda row: (row.legacy, row.os != image.os, row.family))
    return f"take the image {rows[0].family}, which brings driver {rows[0].driver}" if rows else ""
