"""Report comparison, for a terminal, as Markdown and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.agent.probe.model import ReadingClass, Status
from provision.sanitize import escape_line
from provision.spelling import pluralize
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
    indent_rest,
    labeled_rows,
    wrap,
)
from provision.views.markdown import escape_markdown, table_row

VERSION = 1
_HIDDEN = (ReadingClass.CONTEXT, ReadingClass.IDENTITY_WEAK)
"""Classes of readings that are shown with --all only."""
_MAX_IN_FULL = 3
"""Checks that are shown without --all with their causes; the next ones have their fix only."""
_MAX_LISTED = 8
"""Checks, and differences, that are shown without --all."""
_MAX_CAUSES = 3
_MAX_ROWS = 10
"""Rows of one text without --all."""


def render_text(comparison: ReportComparison, color: bool, width: int, everything: bool) -> str:
    """Return the comparison for a terminal, `width` cells wide; all of it with `everything`."""
    return "\n".join(_lines(comparison, Styler(color), max(40, width), everything)) + "\n"


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
                "causes": [_difference(difference) for difference in change.causes],
                "followers": list(change.followers),
                "declared": list(change.declared),
            }
            for change in comparison.check_changes
        ],
        "failing": [
            {"id": pair.id, "title": pair.title, "a": pair.messages[0], "b": pair.messages[1]}
            for pair in comparison.failing_on_both
        ],
        "differences": [_difference(difference) for difference in comparison.differences],
        "only_in_one": list(comparison.one_sided_keys),
        "alike": comparison.equal_count,
    }


def _lines(
    comparison: ReportComparison, styler: Styler, width: int, everything: bool
) -> Iterator[str]:
    style = _summary_style(comparison)
    for row in _clip(summarize_comparison(comparison), width, everything):
        yield styler(row, style)
    yield from _checks(comparison, width, everything)
    shown = [
        difference
        for difference in comparison.differences
        if everything or difference.kind not in _HIDDEN
    ]
    limit = None if everything else _MAX_LISTED
    if shown:
        yield ""
    for difference in shown[:limit]:
        rows = _clip(describe_difference(difference), width - 19, everything)
        yield from indent_rest(f"  {difference.kind.value:<14} ", rows, 17)
    if len(shown) > len(shown[:limit]):
        yield f"  (+{len(shown) - _MAX_LISTED} more: --all)"
    yield ""
    yield from wrap(_footer(comparison, everything), width)


def _summary_style(comparison: ReportComparison) -> Style:
    if any(change.breaks for change in comparison.check_changes):
        return Style.ERROR
    failures = comparison.failing_on_both or comparison.one_sided_failures
    return Style.GOOD if comparison.is_same and not failures else Style.WARNING


def _checks(comparison: ReportComparison, width: int, everything: bool) -> Iterator[str]:
    """Yield changed checks, the first ones in full, and those that fail on both sides."""
    changes = comparison.check_changes
    failing = [change for change in changes if Status.FAIL in (change.a, change.b)]
    checks: list[CheckChange | CheckPair] = [
        *failing,
        *comparison.failing_on_both,
        *comparison.one_sided_failures,
        *(change for change in changes if change not in failing),
    ]
    shown = checks if everything else checks[:_MAX_LISTED]
    after_full = True
    for number, check in enumerate(shown):
        in_full = isinstance(check, CheckChange) and (
            everything or (number < _MAX_IN_FULL and (check.breaks or not number))
        )
        if after_full or in_full:
            yield ""
        after_full = in_full
        if isinstance(check, CheckPair):
            text = _describe_failure(comparison, check)
            yield from indent_rest("", _clip(text, width - 2, everything), 2)
        else:
            yield from _check(comparison, check, width, everything, in_full)
    if len(checks) > len(shown):
        yield f"(+{len(checks) - len(shown)} more: --all)"


def _describe_failure(comparison: ReportComparison, pair: CheckPair) -> str:
    """Return the messages of a check that fails on both sides, or on the only one that ran it."""
    a, b = pair.messages
    if None in (pair.a, pair.b):
        return f"{describe_one_sided_failure(pair, comparison)}: {a or b}"
    message = a if a == b else f"{a} ({comparison.a.name}), {b} ({comparison.b.name})"
    return f"{pair.id} {pair.title} fails on both: {message}"


def _check(
    comparison: ReportComparison, change: CheckChange, width: int, everything: bool, in_full: bool
) -> Iterator[str]:
    """Yield a changed check with its fix, and in full with its reason and causes."""
    sides = f"{comparison.a.name} {change.a.value}, {comparison.b.name} {change.b.value}"
    title, fields = f"{change.id} {change.title}: {sides}", []
    if in_full:
        declared = describe_expected_values(change, comparison)
        fields = [("why", change.message), ("declared", declared)]
        fields += [
            ("differs", describe_difference(difference))
            for difference in change.causes[:_MAX_CAUSES]
        ]
    elif change.message:
        title += f": {change.message}"
    yield from indent_rest("", _clip(title, width - 2, everything), 2)
    for label, text in (*fields, ("fix", change.fix)):
        if text:
            yield from labeled_rows(label, _clip(text, width - LABEL_WIDTH, everything))


def _footer(comparison: ReportComparison, everything: bool) -> str:
    a, b = comparison.a.spec, comparison.b.spec
    parts = []
    if a != b:
        parts.append(f"two specs: {escape_line(a)} and {escape_line(b)}")
    equal, one_sided = comparison.equal_count, len(comparison.one_sided_keys)
    parts.append(f"{pluralize(equal, 'equal reading')}")
    if one_sided:
        parts.append(f"{one_sided} in only one report")
    hidden = sum(difference.kind in _HIDDEN for difference in comparison.differences)
    if hidden and not everything:
        parts.append(f"{pluralize(hidden, 'minor difference')} not shown (--all shows them)")
    return ", ".join(parts)


def _clip(text: str, width: int, everything: bool) -> list[str]:
    return clip(escape_line(text), width, None if everything else _MAX_ROWS)


def _markdown_lines(comparison: ReportComparison) -> Iterator[str]:
    a, b = escape_markdown(comparison.a.name), escape_markdown(comparison.b.name)
    yield f"### {a} and {b}\n\n{escape_markdown(summarize_comparison(comparison))}\n"
    if comparison.check_changes:
        yield f"| check | {a} | {b} | why | differs |\n|---|---|---|---|---|"
        for change in comparison.check_changes:
            causes = [describe_difference(difference) for difference in change.causes[:2]]
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
        yield f"| reading | {a} | {b} | class |\n|---|---|---|---|"
        for difference in comparison.differences:
            values = (format_value(difference.key, value) for value in (difference.a, difference.b))
            yield table_row(
                difference.key + format_derived_count(difference), *values, difference.kind.value
            )
        yield ""
    yield _footer(comparison, everything=True)


def _difference(difference: ReadingPair) -> dict[str, Any]:
    return {
        "key": difference.key,
        "class": difference.kind.value,
        "a": difference.a,
        "b": difference.b,
        "followers": list(difference.followers),
    }
