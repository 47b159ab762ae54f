"""Packages whose admitted releases have no wheel, and the packages that require them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from packaging.version import Version

from provision.facts.evidence import Evidence
from provision.facts.fact_tables import FactTables
from provision.facts.schema_sources import WheelReleases
from provision.facts.versions import parse_specifiers


class BroughtPackage(NamedTuple):
    """A package without a wheel that the newest admitted release of another package requires.

    `is_certain` is False if an older admitted release does not require it.
    """

    name: str
    requires: str
    release: str
    is_certain: bool
    compiles: bool
    evidence: Evidence


def releases_without_wheel(facts: FactTables, name: str, specifiers: str) -> WheelReleases | None:
    """Return the facts of a package if all its admitted known releases are source only."""
    row = facts.wheel_releases.get(name)
    if row is None:
        return None
    admits = parse_specifiers(specifiers)
    if any(admits.filter(row.wheels)) or not any(admits.filter(row.sources)):
        return None
    return row


def brought_without_wheel(
    facts: FactTables, name: str, specifiers: str
) -> Iterator[BroughtPackage]:
    """Yield the packages without a wheel that a package is known to bring."""
    rows = facts.brought_sources.get(name, ())
    admits = parse_specifiers(specifiers)
    for brought in dict.fromkeys(row.brings for row in rows):
        bringing = {
            release: row for row in rows if row.brings == brought for release in row.releases
        }
        others = next(row.others for row in rows if row.brings == brought)
        admitted = sorted(admits.filter((*bringing, *others)), key=Version)
        if not admitted or admitted[-1] not in bringing:
            continue
        row = bringing[admitted[-1]]
        lacking = releases_without_wheel(facts, brought, row.requires)
        if lacking is not None:
            is_certain = all(release in bringing for release in admitted)
            yield BroughtPackage(
                brought, row.requires, admitted[-1], is_certain, lacking.compiles, row.evidence
            )
