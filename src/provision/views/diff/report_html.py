"""Report comparison as one self-contained page: the decisive difference, readings, checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    ReportSide,
)
from provision.verification.diff.summary import (
    describe_difference,
    describe_expected_values,
    format_value,
    summarize_comparison,
)
from provision.views.diff import report_text
from provision.views.report.html import render_template

_CLASS_MEANINGS = {
    ReadingClass.IDENTITY: "has to be equal for the two to be the same environment",
    ReadingClass.EXACT: "a hash, equal where everything that decides it is",
    ReadingClass.MEASUREMENT: "compared within a band",
    ReadingClass.IDENTITY_WEAK: "seldom matters: a patch release, a build",
    ReadingClass.CONTEXT: "the surroundings",
}


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """A reading of both sides; `bars` are percent of the longer value, for measurements."""

    key: str
    a: str
    b: str
    mark: str
    bars: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A difference, its followers, and the checks that it can explain."""

    key: str
    kind: str
    a: str
    b: str
    explains: str
    followers: tuple[ReadingRow, ...]


@dataclass(frozen=True, slots=True)
class CheckChangeRow:
    """A check with two statuses; None on a side that did not run it."""

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
    """A check of both sides, with one message or two."""

    id: str
    title: str
    a: Status | None
    b: Status | None
    says: tuple[str, ...]
    differs: bool


def render_page(comparison: ReportComparison) -> str:
    """Return the page of a comparison. Every string in it is safe and escaped."""
    rows = {pair.key: _reading_row(pair) for pair in comparison.readings}
    broken: list[CheckChangeRow] = []
    other: list[CheckChangeRow] = []
    for change in comparison.check_changes:
        row = _check_change_row(change, comparison)
        (broken if change.breaks else other).append(row)
    failing = [*comparison.failing_on_both, *comparison.one_sided_failures]
    tone = "verified" if comparison.is_same and not failing else "unverified"
    classes = []
    for kind, meaning in _CLASS_MEANINGS.items():
        members = [rows[pair.key] for pair in comparison.readings if pair.kind is kind]
        if members:
            classes.append((kind.value, meaning, members))
    return render_template(
        "diff.html.j2",
        a=_side(comparison.a),
        b=_side(comparison.b),
        headline=_headline(comparison),
        tone="failed" if broken else tone,
        sentence=_safe(summarize_comparison(comparison)),
        broken=broken,
        other=other,
        failing=[_check_row(pair) for pair in failing],
        ranked=[_difference_row(one, comparison, rows) for one in comparison.differences],
        classes=classes,
        checks=[_check_row(pair) for pair in comparison.checks],
        raw=redact(json.dumps(report_text.to_json(comparison), indent=1, ensure_ascii=True)),
        alike=comparison.equal_count,
        onesided=len(comparison.one_sided_keys),
    )


def _headline(comparison: ReportComparison) -> str:
    if any(change.breaks for change in comparison.check_changes):
        return "WORKS ON ONE, FAILS ON THE OTHER"
    if comparison.is_same:
        return "THE SAME ENVIRONMENT"
    if comparison.tampered:
        return "PROVES NOTHING"
    return "NOT THE SAME" if comparison.is_comparable else "CANNOT BE COMPARED"


def _side(side: ReportSide) -> dict[str, str]:
    return {name: _safe(str(value)) for name, value in side._asdict().items()}


def _check_change_row(change: CheckChange, comparison: ReportComparison) -> CheckChangeRow:
    return CheckChangeRow(
        id=_safe(change.id),
        title=_safe(change.title),
        a=_status(change.a),
        b=_status(change.b),
        message=_safe(change.message),
        fix=_safe(change.fix),
        causes=tuple(_safe(describe_difference(one)) for one in change.causes),
        declared=_safe(describe_expected_values(change, comparison)),
        followers=tuple(map(_safe, change.followers)),
    )


def _difference_row(
    difference: ReadingDifference, comparison: ReportComparison, rows: Mapping[str, ReadingRow]
) -> DifferenceRow:
    key = difference.key
    explained = [
        _safe(change.id)
        for change in comparison.check_changes
        if change.breaks and key in [cause.key for cause in change.causes]
    ]
    return DifferenceRow(
        _safe(key),
        difference.kind.value,
        _safe(format_value(key, difference.a)),
        _safe(format_value(key, difference.b)),
        ", ".join(explained),
        tuple(rows[follower] for follower in difference.followers),
    )


def _reading_row(pair: ReadingPair) -> ReadingRow:
    mark = {True: "differs", False: "alike", None: "one side only"}[pair.differs]
    a, b = (_safe(format_value(pair.key, value)) for value in (pair.a, pair.b))
    if pair.differs is None:
        a, b = a if pair.a is not None else "", b if pair.b is not None else ""
    return ReadingRow(_safe(pair.key), a, b, mark, _bars(pair))


def _bars(pair: ReadingPair) -> tuple[float, float] | None:
    """Return both values as percent of the longer one."""
    if pair.kind is not ReadingClass.MEASUREMENT or not (_is_length(pair.a) and _is_length(pair.b)):
        return None
    longer = max(pair.a, pair.b)
    return (round(100 * pair.a / longer, 1), round(100 * pair.b / longer, 1)) if longer else None


def _is_length(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < 1e300


def _check_row(pair: CheckPair) -> CheckRow:
    a, b = map(_safe, pair.messages)
    messages = (f"A: {a}", f"B: {b}") if a and b and a != b else (a or b,)
    return CheckRow(
        _safe(pair.id),
        _safe(pair.title),
        _status(pair.a),
        _status(pair.b),
        messages,
        pair.a != pair.b,
    )


def _status(text: str) -> Status | None:
    """Return the status; unknown for a text that is not one, None for a check that did not run."""
    if not text:
        return None
    return next((status for status in Status if status.value == text), Status.UNKNOWN)


def _safe(text: str) -> str:
    return escape_line(redact(text))
