"""Findings about files at several places as values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from provision.diagnostics import Diagnostic, Location, Severity
from provision.kinds.places import Place

_ABOUT_FILES = "IMP"


class PlaceFinding(NamedTuple):
    """A finding in an original file, and the names of the places that it concerns."""

    finding: Diagnostic
    places: tuple[str, ...]


class CheckedPlace(NamedTuple):
    """A place, the Python that the files were checked with there, and the findings there."""

    place: Place
    python: str
    findings: tuple[Diagnostic, ...]


def merge_findings(places: Iterable[CheckedPlace]) -> tuple[PlaceFinding, ...]:
    """Return each finding once, with all places that it concerns."""
    merged: dict[tuple[str, Location, Severity, str], PlaceFinding] = {}
    for place in places:
        for finding in place.findings:
            key = finding.id, finding.where, finding.severity, finding.message
            known = merged.get(key, PlaceFinding(finding, ()))
            if place.place.name not in known.places:
                merged[key] = known._replace(places=(*known.places, place.place.name))
    return tuple(merged.values())


def name_places(found: PlaceFinding, total: int) -> Diagnostic:
    """Return a finding whose message names its places, `total` of which were checked.

    A finding about the files alone names none, if it holds everywhere.
    """
    if found.finding.id.startswith(_ABOUT_FILES) and len(found.places) == total:
        return found.finding
    places = ", ".join(found.places)
    if 1 < len(found.places) == total:
        places = "both machines" if total == 2 else f"all {total} machines"
    return found.finding._replace(message=f"{found.finding.message} (on {places})")
