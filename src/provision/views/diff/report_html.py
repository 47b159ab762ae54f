"""Two reports beside each other as one self-contained page: the difference that matters first, then
readings and checks, aligned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provision.agent.probe.model import ReadingClass, Status
from provision.sanitize import escape_line, redact
from provision.verification.diff.model import (
    CheckChange,
    CheckPair,
    ReadingDifference,
    ReadingPair,
    ReportComparison,
)
from provision.verification.diff.summary import (
    describe_difference,
    describe_expected_values,
    format_value,
    summarize_comparison,
)
from provision.views.diff import report_text
from provision.views.report.html import render_template

_MEANS = {
    ReadingClass.IDENTITY: "has to be equal for the two to be the same environment",
    ReadingClass.EXACT: "a hash, equal where everything that decides it is",
    ReadingClass.MEASUREMENT: "compared within a band",
    ReadingClass.IDENTITY_WEAK: "seldom matters: a patch release, a build",
    ReadingClass.CONTEXT: "the surroundings",
}
_ORDER = tuple(_MEANS)


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """A reading of both sides as it is shown; `mark` says whether it differs. `bars` are the shares
    of the longer value, for measurements.
    """

    key: str
    a: str
    b: str
    mark: str
    bars: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A difference with what follows from it; `explains` names the checks that it can explain."""

    key: str
    kind: str
    a: str
    b: str
    explains: str
    followers: tuple[ReadingRow, ...]


@dataclass(frozen=True, slots=True)
class CheckChangeRow:
    """A check that ended otherwise; a status is None on a side that did not ask it."""

    id: str
    title: str
    a: Status | None
    b: Status | None
    message: str
    fix: str
    causes: tuple[str, ...]
    declared: str
    followers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check of both sides: what each says, or what both say."""

    id: str
    title: str
    a: Status | None
    b: Status | None
    says: tuple[str, ...]
    differs: bool


def render_page(found: ReportComparison) -> str:
    """Return the page of a comparison. Every string in it is safe and escaped."""
    shown = {row.key: _row(row) for row in found.readings}
    broken, other = (
        [_check_change_row(turn, found) for turn in found.check_changes if turn.breaks is breaks]
        for breaks in (True, False)
    )
    return render_template(
        "diff.html.j2",
        a=_side(found.a._asdict()),
        b=_side(found.b._asdict()),
        headline=_headline(found),
        tone="failed"
        if broken
        else "verified"
        if found.is_same and not (found.failing_on_both or found.one_sided_failures)
        else "unverified",
        sentence=_text(summarize_comparison(found)),
        broken=broken,
        other=other,
        failing=[_check_row(pair) for pair in (*found.failing_on_both, *found.one_sided_failures)],
        ranked=[_difference_row(one, found, shown) for one in found.differences],
        classes=[
            (kind.value, _MEANS[kind], rows)
            for kind in _ORDER
            if (rows := [shown[row.key] for row in found.readings if row.kind is kind])
        ],
        checks=[_check_row(pair) for pair in found.checks],
        raw=redact(json.dumps(report_text.to_json(found), indent=1, ensure_ascii=True)),
        alike=found.equal_count,
        onesided=len(found.one_sided_keys),
    )


def _headline(found: ReportComparison) -> str:
    if any(turn.breaks for turn in found.check_changes):
        return "WORKS ON ONE, FAILS ON THE OTHER"
    return (
        "THE SAME ENVIRONMENT"
        if found.is_same
        else "PROVES NOTHING"
        if found.tampered
        else "NOT THE SAME"
        if found.is_comparable
        else "CANNOT BE COMPARED"
    )


def _side(side: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(str(value)) for name, value in side.items()}


def _check_change_row(turn: CheckChange, found: ReportComparison) -> CheckChangeRow:
    return CheckChangeRow(
        id=_text(turn.id),
        title=_text(turn.title),
        a=_status(turn.a),
        b=_status(turn.b),
        message=_text(turn.message),
        fix=_text(turn.fix),
        causes=tuple(_text(describe_difference(one)) for one in turn.causes),
        declared=_text(describe_expected_values(turn, found)),
        followers=tuple(map(_text, turn.followers)),
    )


def _difference_row(
    one: ReadingDifference, found: ReportComparison, shown: Mapping[str, ReadingRow]
) -> DifferenceRow:
    explains = ", ".join(
        _text(turn.id)
        for turn in found.check_changes
        if turn.breaks and one.key in [cause.key for cause in turn.causes]
    )
    followers = tuple(shown[key] for key in one.followers)
    return DifferenceRow(
        _text(one.key),
        one.kind.value,
        _text(format_value(one.key, one.a)),
        _text(format_value(one.key, one.b)),
        explains,
        followers,
    )


def _row(row: ReadingPair) -> ReadingRow:
    mark = {True: "differs", False: "alike", None: "one side only"}[row.differs]
    absent = row.differs is None
    a, b = (
        "" if absent and value is None else _text(format_value(row.key, value))
        for value in (row.a, row.b)
    )
    return ReadingRow(_text(row.key), a, b, mark, _bars(row))


def _bars(row: ReadingPair) -> tuple[float, float] | None:
    """Return both values as percent of the longer one."""
    values = [
        value
        for value in (row.a, row.b)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300
    ]
    if row.kind is not ReadingClass.MEASUREMENT or len(values) < 2 or not max(values):
        return None
    return round(100 * values[0] / max(values), 1), round(100 * values[1] / max(values), 1)


def _check_row(pair: CheckPair) -> CheckRow:
    a, b = (_text(words) for words in pair.messages)
    says = tuple(_both(a, b))
    return CheckRow(
        _text(pair.id), _text(pair.title), _status(pair.a), _status(pair.b), says, pair.a != pair.b
    )


def _both(a: str, b: str) -> Iterator[str]:
    if a == b or not a or not b:
        yield a or b
    else:
        yield f"A: {a}"
        yield f"B: {b}"


def _status(word: str) -> Status | None:
    """Return the status; a word that is none of them could not be read, which is unknown."""
    return (
        next((status for status in Status if status.value == word), Status.UNKNOWN)
        if word
        else None
    )


def _text(text: str) -> str:
    return escape_line(redact(text))
