"""What we say about a spec: findings as values, each with a place, a reason and a way out."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

Route = tuple[str | int, ...]
"""Where a value stands in the spec as its author wrote it: ("packages", 0), ("gpu", "type"); () is
the whole document.
"""


class Severity(StrEnum):
    """How much a finding matters. `UNKNOWN` is an answer too: the facts have no row for this."""

    ERROR = "error"
    WARNING = "warning"
    UNKNOWN = "unknown"
    INFO = "info"


class RoutePart(StrEnum):
    """Which part of a route is meant."""

    VALUE = "value"
    KEY = "key"


class Applicability(StrEnum):
    """Whether a fix may be applied without asking (`SAFE`), only on request (`UNSAFE`), or by a
    person (`MANUAL`).
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


class Position(NamedTuple):
    """A place in a file: 1-based line, 1-based column in code points, 0-based offset in code
    points.
    """

    line: int
    column: int
    offset: int


class Span(NamedTuple):
    """A stretch of a file's text; `end` is exclusive."""

    file: str
    start: Position
    end: Position


class RouteLocation(NamedTuple):
    """A route and which part of it is meant; the view turns it into line and column."""

    route: Route
    part: RoutePart = RoutePart.VALUE


Location = RouteLocation | Span
"""Findings about meaning name a `Place`; findings about text that has no route (syntax, duplicate
keys) name a `Span`.
"""


class RelatedLocation(NamedTuple):
    """A second place that takes part in a finding, and what it has to do with it."""

    where: Location
    text: str


class Replace(NamedTuple):
    """Put `text` (YAML source) in the place of a scalar or of a key."""

    where: Location
    text: str


class Insert(NamedTuple):
    """Add `key: text` to the mapping at `route`, or `- text` to the sequence there when `key` is
    None.
    """

    route: Route
    key: str | None
    text: str


Edit = Replace | Insert


class Fix(NamedTuple):
    """A change of the author's text that removes a finding."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE


class Diagnostic(NamedTuple):
    """One finding.

    `id` is three letters and three digits and never reused; `message` says what is wrong with
    both values, `why` what follows from it, `help` the way out;
    `source` names where the rule's knowledge comes from.
    """

    id: str
    name: str
    severity: Severity
    message: str
    where: Location
    why: str = ""
    help: str = ""
    related: tuple[RelatedLocation, ...] = ()
    fix: Fix | None = None
    source: str = ""


def worst_severity(diagnostics: tuple[Diagnostic, ...]) -> Severity | None:
    """Return the gravest severity present, or None when there is no finding."""
    ranks = list(Severity)
    return min((d.severity for d in diagnostics), key=ranks.index, default=None)
