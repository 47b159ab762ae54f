"""Comparison of two snapshots, for a terminal, as Markdown and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from provision.diagnostics import Severity
from provision.sanitize import escape_line
from provision.spelling import pluralize
from provision.verification.diff.layers import Layer
from provision.verification.diff.snapshot_model import Cause, Difference, SnapshotComparison
from provision.verification.diff.snapshot_summary import (
    describe_change,
    describe_side,
    summarize_snapshots,
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

SCHEMA = "provision.comparison/1"
VERSION = 1
_MAX_IN_FULL = 3
"""Causes that are shown without --all with their reason and fix."""
_MAX_LISTED = 8
"""Causes, and differences of a layer, that are shown without --all."""
_MAX_ROWS = 4
_LAYER_WIDTH = 23
_STYLES = {Severity.ERROR: Style.ERROR, Severity.WARNING: Style.WARNING}


def render_text(comparison: SnapshotComparison, color: bool, width: int, everything: bool) -> str:
    """Return the comparison for a terminal, `width` cells wide; all of it with `everything`."""
    return "\n".join(_lines(comparison, Styler(color), max(50, width), everything)) + "\n"


def render_markdown(comparison: SnapshotComparison) -> str:
    """Return the comparison as Markdown, for a comment or a ticket."""
    return "\n".join(_markdown_lines(comparison)) + "\n"


def to_json(comparison: SnapshotComparison) -> dict[str, Any]:
    """Return the comparison as data."""
    error = comparison.error
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "same": comparison.is_same,
        "sentence": summarize_snapshots(comparison),
        "a": _side(comparison, "a"),
        "b": _side(comparison, "b"),
        "error": error._asdict() if error is not None else None,
        "causes": [_cause(cause) for cause in comparison.causes],
        "differences": [_difference(item) for item in comparison.differences],
        "harmless": [_difference(item) for item in comparison.minor],
        "on_both": [
            {"id": problem.id, "message": problem.message, "fix": problem.fix}
            for problem in comparison.shared
        ],
        "only_in_one": list(comparison.one_sided_keys),
        "alike": comparison.equal_count,
    }


def _side(comparison: SnapshotComparison, letter: str) -> dict[str, str]:
    side = comparison.a if letter == "a" else comparison.b
    return {"name": side.name, "kind": side.kind, "distrust": side.distrust}


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        **cause._asdict(),
        "severity": cause.severity.value,
        "layer": cause.layer.value,
        "differences": [_difference(item) for item in cause.differences],
        "ids": list(cause.ids),
        "also": list(cause.also),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "key": difference.key,
        "class": difference.kind.value,
        "layer": difference.layer.value,
        "a": difference.a,
        "b": difference.b,
        "followers": list(difference.followers),
    }


def _lines(
    comparison: SnapshotComparison, styler: Styler, width: int, everything: bool
) -> Iterator[str]:
    style = Style.GOOD if comparison.is_same else Style.WARNING
    if comparison.causes:
        style = _STYLES.get(comparison.causes[0].severity, Style.WARNING)
    for row in wrap(escape_line(summarize_snapshots(comparison)), width):
        yield styler(row, style)
    shown = comparison.causes if everything else comparison.causes[:_MAX_LISTED]
    for number, cause in enumerate(shown):
        in_full = everything or number < _MAX_IN_FULL
        if number and (in_full or number == _MAX_IN_FULL):
            yield ""
        yield from _cause_lines(comparison, cause, number + 1, width, in_full)
    if len(shown) < len(comparison.causes):
        yield f"(+{len(comparison.causes) - len(shown)} more: --all)"
    followers = {
        key
        for difference in (*_all_differences(comparison), *comparison.differences)
        for key in difference.followers
    }
    others = [item for item in comparison.differences if everything or item.key not in followers]
    yield from _difference_lines(others, "also different", width, everything)
    if everything:
        yield from _difference_lines(comparison.minor, "harmless", width, everything)
        yield from _shared_lines(comparison, width)
    yield ""
    yield from wrap(_footer(comparison, everything), width)


def _all_differences(comparison: SnapshotComparison) -> Iterator[Difference]:
    for cause in comparison.causes:
        yield from cause.differences


def _cause_lines(
    comparison: SnapshotComparison, cause: Cause, number: int, width: int, in_full: bool
) -> Iterator[str]:
    if number > 1:  # the first one is the sentence
        place = describe_side(comparison, cause)
        text = escape_line(f"{place}: {cause.message}" if place else cause.message)
        rows = clip(text, width - 3, None if in_full else 2)
        yield from indent_rest(f"{number}. ", rows, 3)
    if not in_full:
        return
    changes = [describe_change(item) for item in cause.differences[:2]] if cause.id else []
    fields = [("differs", change) for change in changes]
    fields += [("also", message) for message in cause.also]
    fields += [("error", cause.error), ("why", cause.why), ("fix", cause.fix)]
    for label, text in fields:
        if text:
            rows = clip(escape_line(text), width - LABEL_WIDTH, _MAX_ROWS)
            yield from labeled_rows(label, rows)


def _difference_lines(
    differences: Sequence[Difference], title: str, width: int, everything: bool
) -> Iterator[str]:
    if differences:
        yield ""
        yield f"{title}:"
    for layer in Layer:
        members = [item for item in differences if item.layer is layer]
        shown = members if everything else members[:_MAX_LISTED]
        label = layer.value
        for item in shown:
            rows = clip(escape_line(describe_change(item)), width - _LAYER_WIDTH, 2)
            yield from indent_rest(f"  {label:<{_LAYER_WIDTH - 2}}", rows, _LAYER_WIDTH)
            label = ""
        if len(shown) < len(members):
            yield f"{'':{_LAYER_WIDTH}}(+{len(members) - len(shown)} more: --all)"


def _shared_lines(comparison: SnapshotComparison, width: int) -> Iterator[str]:
    if comparison.shared:
        yield ""
        yield "on both sides:"
    for problem in comparison.shared:
        yield from indent_rest("  ", clip(escape_line(problem.message), width - 4, 2), 4)


def _footer(comparison: SnapshotComparison, everything: bool) -> str:
    parts = []
    if (count := len(comparison.minor)) and not everything:
        parts.append(f"{pluralize(count, 'harmless difference')} (--all shows them)")
    parts.append(pluralize(comparison.equal_count, "equal value"))
    if count := len(comparison.one_sided_keys):
        parts.append(f"{count} observed on only one side")
    if (count := len(comparison.shared)) and not everything:
        parts.append(f"{pluralize(count, 'problem')} on both sides")
    return ", ".join(parts)


def _markdown_lines(comparison: SnapshotComparison) -> Iterator[str]:
    a, b = (escape_markdown(name) for name in comparison.names.values())
    yield f"### {a} and {b}\n\n{escape_markdown(summarize_snapshots(comparison))}\n"
    if comparison.causes:
        yield "| where | what | differs | why | fix |\n|---|---|---|---|---|"
        for cause in comparison.causes:
            changes = "; ".join(describe_change(item) for item in cause.differences[:2])
            place = describe_side(comparison, cause)
            yield table_row(place, cause.message, changes, cause.error or cause.why, cause.fix)
        yield ""
    if comparison.differences:
        yield "| layer | also different |\n|---|---|"
        for item in comparison.differences:
            yield table_row(item.layer.value, describe_change(item))
        yield ""
    yield _footer(comparison, everything=False).replace(" (--all shows them)", "")
