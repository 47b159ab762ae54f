"""Findings about a spec as values, each with a location, a reason and a fix."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

Route = tuple[str | int, ...]
"""The path of a value in the spec as written: ("packages", 0); () is the whole document."""


def field_of(route: Route) -> str | int | None:
    """Return the field of the spec that a route is in, or the field of a target; None for ()."""
    is_in_target = route[:1] == ("targets",) and len(route) > len(("targets", "NAME"))
    return route[2] if is_in_target else next(iter(route), None)


class Severity(StrEnum):
    """The severity of a finding; `UNKNOWN` means that the facts have no row for a value."""

    ERROR = "error"
    WARNING = "warning"
    UNKNOWN = "unknown"
    INFO = "info"


class RoutePart(StrEnum):
    """The part of a route that a location points at."""

    VALUE = "value"
    KEY = "key"


class Applicability(StrEnum):
    """The way to apply a fix: automatic (`SAFE`), on request (`UNSAFE`), by a person (`MANUAL`)."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


class Position(NamedTuple):
    """A position in a file: 1-based line and column, 0-based offset, both in code points."""

    line: int
    column: int
    offset: int


class Span(NamedTuple):
    """A range of a file's text; `end` is exclusive."""

    file: str
    start: Position
    end: Position


class RouteLocation(NamedTuple):
    """A route and the part of it; the view turns it into line and column."""

    route: Route
    part: RoutePart = RoutePart.VALUE


Location = RouteLocation | Span
"""Findings about meaning name a `RouteLocation`, those about text without a route a `Span`."""


class RelatedLocation(NamedTuple):
    """A second location that takes part in a finding, and its role."""

    where: Location
    text: str


class Replace(NamedTuple):
    """Replace a scalar or a key by `text` (YAML source)."""

    where: Location
    text: str


class Insert(NamedTuple):
    """Add `key: text` to the mapping at `route`, or `- text` to the sequence if `key` is None."""

    route: Route
    key: str | None
    text: str


Edit = Replace | Insert


class Fix(NamedTuple):
    """A change of the author's text that resolves a finding."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE


class Diagnostic(NamedTuple):
    """One finding.

    `id` is three letters and three digits, and never reused. `message` contains both values, `why`
    the consequence, `help` the fix in words; `source` names the origin of the rule's knowledge.
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


class SuppressionKind(StrEnum):
    """The way in which a finding was accepted."""

    COMMENT = "comment"
    CONFIGURATION = "configuration"
    BASELINE = "baseline"
    BASE = "base"


class SuppressedFinding(NamedTuple):
    """A finding that was accepted: `where` is the place of the decision, if it is in a file."""

    finding: Diagnostic
    kind: SuppressionKind
    reason: str = ""
    where: Span | None = None
