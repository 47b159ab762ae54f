"""Findings about files at places, for people and programs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from provision.diagnostics import Severity
from provision.imports.checked_places import CheckedPlace, PlaceFinding, name_places
from provision.imports.imported_source import ImportedSource
from provision.imports.model import Leftover
from provision.kinds.places import Place
from provision.sanitize import redact
from provision.spelling import pluralize
from provision.views.diagnostics.json import findings_to_json
from provision.views.diagnostics.source_location import COUNTED, SEVERITY_LABELS
from provision.views.diagnostics.text import sort_findings
from provision.views.formatting import Style, Styler
from provision.views.imported_files import leftovers_to_json, render_leftovers


def save_command(paths: Sequence[Path], groups: Sequence[str]) -> str:
    """Return the command that writes a spec with the content of files."""
    options = "".join(f" --group {shlex.quote(group)}" for group in groups)
    names = " ".join(shlex.quote(str(path)) for path in paths)
    return f"provision import {names}{options} -o provision.yaml"


def render_leftover_lines(leftovers: Sequence[Leftover], width: int) -> str:
    """Return what a spec cannot contain, and what was therefore not checked."""
    return "\n".join(["Left out or changed:", *render_leftovers(leftovers, width)])


def render_places(places: Sequence[CheckedPlace], color: bool) -> str:
    """Return a line for each place: its name, the findings there, and what it is."""
    styler = Styler(color)
    counts = [_count(place) for place in places]
    name_width = max(len(place.place.name) for place in places)
    count_width = max(map(len, counts))
    lines = []
    for place, count in zip(places, counts, strict=True):
        name = styler(f"{place.place.name:<{name_width}}", Style.STRONG)
        lines.append(f"{name}  {count:<{count_width}}  {_describe(place)}")
    return "\n".join(lines)


def to_json(
    findings: Sequence[PlaceFinding],
    source: ImportedSource,
    places: Sequence[CheckedPlace],
    leftovers: Sequence[Leftover],
) -> dict[str, Any]:
    """Return the findings as `lint` does, each with its `places`, and the places."""
    named = {name_places(one, len(places)): one for one in findings}
    document = findings_to_json(list(named), source)
    ordered = sort_findings(named, source)
    for data, diagnostic in zip(document["diagnostics"], ordered, strict=True):
        data["message"] = redact(named[diagnostic].finding.message)
        data["places"] = list(named[diagnostic].places)
    document["places"] = [dict(_place_fields(place)) for place in places]
    document["leftovers"] = leftovers_to_json(leftovers)
    return document


def render_place_list(places: Sequence[Place], color: bool) -> str:
    """Return a line for each place, and how a runtime or an image is named."""
    styler = Styler(color)
    bases = [place for place in places if not place.version]
    width = max(len(place.name) for place in bases)
    lines = [
        f"{styler(f'{place.name:<{width}}', Style.STRONG)}  {place.description}" for place in bases
    ]
    versions = _versions_by_kind(places)
    for name, words in versions.items():
        lines += [
            "",
            f"To check for a different runtime or image, use a name such as {name}@{words[0]}:",
        ]
        lines += [f"  {word}" for word in words]
    return "\n".join(lines)


def places_to_json(places: Sequence[Place]) -> list[dict[str, Any]]:
    """Return places as data."""
    return [
        {
            "name": place.name,
            "description": place.description,
            "kind": place.target["kind"],
            "gpu": place.gpu,
            "python": place.python,
            "default": place.is_default or place.is_this_machine,
        }
        for place in places
    ]


def _versions_by_kind(places: Sequence[Place]) -> Mapping[str, list[str]]:
    """Return the runtimes or images of each kind by the default place of the kind."""
    versions: dict[str, list[str]] = {}
    names = {place.target["kind"]: place.name for place in places if place.is_default}
    for place in places:
        if place.version and place.base == names.get(place.target["kind"]):
            versions.setdefault(place.base, []).append(place.version)
    return versions


def _count(place: CheckedPlace) -> str:
    counts = Counter(finding.severity for finding in place.findings)
    words = [
        pluralize(counts[severity], COUNTED.get(severity, SEVERITY_LABELS[severity][0]))
        for severity in Severity
        if counts[severity]
    ]
    return ", ".join(words) or "ok"


def _describe(checked: CheckedPlace) -> str:
    place = checked.place
    if checked.python == place.python or not place.python:
        return place.description
    return f"{place.description}; checked with Python {checked.python}, which the files specify"


def _place_fields(checked: CheckedPlace) -> Iterator[tuple[str, Any]]:
    yield "name", checked.place.name
    yield "description", checked.place.description
    yield "gpu", checked.place.gpu
    yield "python", checked.python
    counts = Counter(finding.severity for finding in checked.findings)
    yield from ((severity.value, counts[severity]) for severity in Severity)
