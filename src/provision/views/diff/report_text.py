"""Report comparison, for a terminal, as Markdown and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from provision.agent.probe.model import ReadingClass, Status
from provision.sanitize import escape_line
from provision.verification.diff.model import (
    CheckChange,
    CheckPair,
    ReadingPair,
    ReportComparison,
)
from provision.verification.diff.summary import (
    describe_difference,
    describe_expected_values,
    describe_one_sided_failure,
    format_derived_count,
    format_value,
    summarize_comparison,
)
from provision.views.formatting import (
    LABEL_WIDTH,
    Style,
    Styler,
    clip,
    labeled_rows,
    truncate,
    wrap,
)
from provision.views.markdown import escape_markdown, table_row

VERSION = 1
SCREEN_ROWS = 25
"""Rows without `everything`: one screen of the smallest terminal in use (80 x 25)."""


_HIDDEN = (ReadingClass.CONTEXT, ReadingClass.IDENTITY_WEAK)
"""Classes of readings that are shown with --all only."""
_MAX_CAUSES = 3


class _DetailLevel(NamedTuple):
    """Limits of the text; None shows all.

    `full` is the number of checks shown in full, `few` of checks and of differences in all, and
    `rows` the number of rows of each text.
    """

    full: int | None = None
    few: int | None = None
    rows: int | None = None


_FULL_DETAIL = _DetailLevel()
_DETAIL_LEVELS = (
    _DetailLevel(2, 6, 6),
    _DetailLevel(2, 6, 3),
    _DetailLevel(1, 6, 3),
    _DetailLevel(1, 4, 3),
    _DetailLevel(1, 3, 2),
    _DetailLevel(1, 1, 1),
)
"""The first that fits a screen is used; the last one always fits."""


def render_text(comparison: ReportComparison, color: bool, width: int, everything: bool) -> str:
    """Return the comparison for a terminal, `width` cells wide; all of it with `everything`."""
    styler, width = Styler(color), max(40, width)
    rows: list[str] = []
    for level in (_FULL_DETAIL,) if everything else _DETAIL_LEVELS:
        rows = list(_lines(comparison, styler, width, level))
        if len(rows) <= SCREEN_ROWS:
            break
    return "\n".join(rows) + "\n"


def render_markdown(comparison: ReportComparison) -> str:
    """Return the comparison as Markdown, for a comment or a ticket."""
    return "\n".join(_markdown_lines(comparison)) + "\n"


def to_json(comparison: ReportComparison) -> dict[str, Any]:
    """Return the comparison as data."""
    return {
        "version": VERSION,
        "same": comparison.is_same,
        "changed": list(comparison.tampered),
        "sentence": summarize_comparison(comparison),
        "a": comparison.a._asdict(),
        "b": comparison.b._asdict(),
        "checks": [
            {
                **change._asdict(),
                "breaks": change.breaks,
                "causes": [_difference(one) for one in change.causes],
                "followers": list(change.followers),
                "declared": list(change.declared),
            }
            for change in comparison.check_changes
        ],
        "failing": [
            {"id": pair.id, "title": pair.title, "a": pair.messages[0], "b": pair.messages[1]}
            for pair in comparison.failing_on_both
        ],
        "differences": [_difference(one) for one in comparison.differences],
        "only_in_one": list(comparison.one_sided_keys),
        "alike": comparison.equal_count,
    }


def _lines(
    comparison: ReportComparison, styler: Styler, width: int, level: _DetailLevel
) -> Iterator[str]:
    everything = level == _FULL_DETAIL
    style = _summary_style(comparison)
    for row in _clip(summarize_comparison(comparison), width, level.rows):
        yield styler(row, style)
    yield from _checks(comparison, width, level)
    shown = [one for one in comparison.differences if everything or one.kind not in _HIDDEN]
    if shown:
        yield ""
    for one in shown[: level.few]:
        yield truncate(f"  {one.kind.value:<14} {escape_line(describe_difference(one))}", width)
    if level.few is not None and len(shown) > level.few:
        yield f"  (+{len(shown) - level.few} more: --all)"
    yield ""
    yield from wrap(_footer(comparison, everything), width)


def _summary_style(comparison: ReportComparison) -> Style:
    if any(change.breaks for change in comparison.check_changes):
        return Style.ERROR
    failures = comparison.failing_on_both or comparison.one_sided_failures
    return Style.GOOD if comparison.is_same and not failures else Style.WARNING


def _checks(comparison: ReportComparison, width: int, level: _DetailLevel) -> Iterator[str]:
    """Yield changed checks, the first ones in full, and those that fail on both sides."""
    changes = comparison.check_changes
    failing = [change for change in changes if Status.FAIL in (change.a, change.b)]
    checks: list[CheckChange | CheckPair] = [
        *failing,
        *comparison.failing_on_both,
        *comparison.one_sided_failures,
        *(change for change in changes if change not in failing),
    ]
    after_full = True
    for number, check in enumerate(checks[: level.few]):
        in_full = isinstance(check, CheckChange) and (
            level.full is None or (number < level.full and (check.breaks or not number))
        )
        if after_full and not in_full:
            yield ""
        after_full = in_full
        if isinstance(check, CheckPair):
            yield truncate(escape_line(_describe_failure(comparison, check)), width)
        elif in_full:
            yield from _full_check(comparison, check, width, level.rows)
        else:
            text = f"{_check_title(comparison, check)}: {escape_line(check.message)}"
            yield truncate(text, width)
    if level.few is not None and len(checks) > level.few:
        yield f"(+{len(checks) - level.few} more: --all)"


def _describe_failure(comparison: ReportComparison, pair: CheckPair) -> str:
    """Return the messages of a check that fails on both sides, or on the only one that ran it."""
    a, b = pair.messages
    if None in (pair.a, pair.b):
        return f"{describe_one_sided_failure(pair, comparison)}: {a or b}"
    message = a if a == b else f"{a} ({comparison.a.name}), {b} ({comparison.b.name})"
    return f"{pair.id} {pair.title} fails on both: {message}"


def _full_check(
    comparison: ReportComparison, change: CheckChange, width: int, max_rows: int | None
) -> Iterator[str]:
    yield ""
    yield from _clip(_check_title(comparison, change), width, max_rows)
    fields = [("why", change.message), ("declared", describe_expected_values(change, comparison))]
    fields += [("differs", describe_difference(one)) for one in change.causes[:_MAX_CAUSES]]
    for label, text in (*fields, ("fix", change.fix)):
        if text:
            yield from labeled_rows(label, _clip(text, width - LABEL_WIDTH, max_rows))


def _check_title(comparison: ReportComparison, change: CheckChange) -> str:
    sides = f"{comparison.a.name} {change.a.value}, {comparison.b.name} {change.b.value}"
    return escape_line(f"{change.id} {change.title}: {sides}")


def _footer(comparison: ReportComparison, everything: bool) -> str:
    a, b = comparison.a.spec, comparison.b.spec
    parts = []
    if a != b:
        parts.append(f"of two specs, {escape_line(a)} and {escape_line(b)}")
    equal, one_sided = comparison.equal_count, len(comparison.one_sided_keys)
    parts.append(f"{equal} {'reading is' if equal == 1 else 'readings are'} alike")
    if one_sided:
        parts.append(f"{one_sided} {'was' if one_sided == 1 else 'were'} taken on one side only")
    hidden = sum(one.kind in _HIDDEN for one in comparison.differences)
    if hidden and not everything:
        differ, are = ("differs", "is") if hidden == 1 else ("differ", "are")
        parts.append(f"{hidden} that {differ} in the surroundings {are} left out (--all)")
    return ", ".join(parts)


def _clip(text: str, width: int, max_rows: int | None) -> list[str]:
    return clip(escape_line(text), width, max_rows)


def _markdown_lines(comparison: ReportComparison) -> Iterator[str]:
    a, b = escape_markdown(comparison.a.name), escape_markdown(comparison.b.name)
    yield f"### {a} and {b}\n\n{escape_markdown(summarize_comparison(comparison))}\n"
    if comparison.check_changes:
        yield f"| check | {a} | {b} | why | differs |\n|---|---|---|---|---|"
        for change in comparison.check_changes:
            causes = [describe_difference(one) for one in change.causes[:2]]
            if declared := describe_expected_values(change, comparison):
                causes.insert(0, declared)
            title = f"{change.id} {change.title}"
            yield table_row(
                title, change.a.value, change.b.value, change.message, "; ".join(causes)
            )
        yield ""
    for pair in (*comparison.failing_on_both, *comparison.one_sided_failures):
        yield escape_markdown(_describe_failure(comparison, pair)) + "\n"
    if comparison.differences:
        yield f"| reading | {a} | {b} | means |\n|---|---|---|---|"
        for one in comparison.differences:
            values = (format_value(one.key, value) for value in (one.a, one.b))
            yield table_row(one.key + format_derived_count(one), *values, one.kind.value)
        yield ""
    yield _footer(comparison, everything=True)


def _difference(one: ReadingPair) -> dict[str, Any]:
    return {
        "key": one.key,
        "class": one.kind.value,
        "a": one.a,
        "b": one.b,
        "followers": list(one.followers),
    }
