"""Two reports side by side: what ended otherwise and what explains it, for a terminal, as Markdown
and as data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from provision.agent.probe.model import ReadingClass, Status
from provision.sanitize import escape_line
from provision.verification.diff.model import (
    CheckChange,
    CheckPair,
    ReadingDifference,
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
from provision.views.markdown import escape_markdown
from provision.views.terminal_text import ELLIPSIS, Style, Styler, truncate, wrap

VERSION = 1
SCREEN_ROWS = 25
"""Rows without `everything`: one screen of the smallest terminal in use (80 x 25)."""


class _DetailLevel(NamedTuple):
    """How many checks are told in full, how many checks and differences at all, and in how many
    rows each text (None: all of it).
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
"""The first of these that fits a screen is taken; the last one always does."""
_LEAD = 12
_HIDDEN = (ReadingClass.CONTEXT, ReadingClass.IDENTITY_WEAK)


def render_text(found: ReportComparison, color: bool, width: int, everything: bool) -> str:
    """Return the comparison for a terminal, `width` cells wide; with `everything` each difference."""  # noqa: E501
    pen, width = Styler(color), max(40, width)
    told = [
        list(_lines(found, pen, width, share))
        for share in ((_FULL_DETAIL,) if everything else _DETAIL_LEVELS)
    ]
    return "\n".join(next((rows for rows in told if len(rows) <= SCREEN_ROWS), told[-1])) + "\n"


def render_markdown(found: ReportComparison) -> str:
    """Return the comparison as Markdown, for a comment or a ticket."""
    return "\n".join(_markdown_lines(found)) + "\n"


def to_json(found: ReportComparison) -> dict[str, Any]:
    """Return the comparison as data."""
    return {
        "version": VERSION,
        "same": found.is_same,
        "changed": list(found.tampered),
        "sentence": summarize_comparison(found),
        "a": found.a._asdict(),
        "b": found.b._asdict(),
        "checks": [_check_change(turn) for turn in found.check_changes],
        "failing": [
            {"id": pair.id, "title": pair.title, "a": pair.messages[0], "b": pair.messages[1]}
            for pair in found.failing_on_both
        ],
        "differences": [_difference(one) for one in found.differences],
        "only_in_one": list(found.one_sided_keys),
        "alike": found.equal_count,
    }


def _lines(found: ReportComparison, pen: Styler, width: int, share: _DetailLevel) -> Iterator[str]:
    everything = share == _FULL_DETAIL
    good = found.is_same and not (found.failing_on_both or found.one_sided_failures)
    ink = (
        Style.ERROR
        if any(turn.breaks for turn in found.check_changes)
        else Style.GOOD
        if good
        else Style.WARNING
    )
    yield from (pen(row, ink) for row in _clipped(summarize_comparison(found), width, share.rows))
    yield from _checks(found, width, share)
    shown = [one for one in found.differences if everything or one.kind not in _HIDDEN]
    if shown:
        yield ""
    for one in shown[: share.few]:
        yield truncate(f"  {one.kind.value:<14} {escape_line(describe_difference(one))}", width)
    if share.few is not None and len(shown) > share.few:
        yield f"  (+{len(shown) - share.few} more: --all)"
    yield ""
    yield from wrap(_rest(found, everything), width)


def _checks(found: ReportComparison, width: int, share: _DetailLevel) -> Iterator[str]:
    """Checks that ended otherwise, some of them in full, and those that fail on both sides: in a
    row each.
    """
    whole = True
    failing = [turn for turn in found.check_changes if Status.FAIL in (turn.a, turn.b)]
    told: list[CheckChange | CheckPair] = [
        *failing,
        *found.failing_on_both,
        *found.one_sided_failures,
        *(turn for turn in found.check_changes if turn not in failing),
    ]
    for place, one in enumerate(told[: share.few]):
        before, whole = (
            whole,
            isinstance(one, CheckChange)
            and (share.full is None or (place < share.full and (one.breaks or not place))),
        )
        if before and not whole:
            yield ""
        if isinstance(one, CheckPair):
            yield truncate(escape_line(_failing_check(found, one)), width)
        elif whole:
            yield from _full_check(found, one, width, share.rows)
        else:
            yield truncate(_head(found, one) + f": {escape_line(one.message)}", width)
    if share.few is not None and len(told) > share.few:
        yield f"(+{len(told) - share.few} more: --all)"


def _failing_check(found: ReportComparison, pair: CheckPair) -> str:
    """Return what a check says that fails on both sides, or on the one that was asked."""
    one, other = pair.messages
    if "" in (pair.a, pair.b):
        return f"{describe_one_sided_failure(pair, found)}: {one or other}"
    return f"{pair.id} {pair.title} fails on both: " + (
        one if one == other else f"{one} ({found.a.name}), {other} ({found.b.name})"
    )


def _full_check(
    found: ReportComparison, turn: CheckChange, width: int, most: int | None
) -> Iterator[str]:
    yield ""
    yield from _clipped(_head(found, turn), width, most)
    yield from _field("why", turn.message, width, most)
    yield from _field("declared", describe_expected_values(turn, found), width, most)
    for one in turn.causes[:3]:
        yield from _field("differs", describe_difference(one), width, most)
    yield from _field("fix", turn.fix, width, most)


def _head(found: ReportComparison, turn: CheckChange) -> str:
    return escape_line(f"{turn.id} {turn.title}: {found.a.name} {turn.a}, {found.b.name} {turn.b}")


def _rest(found: ReportComparison, everything: bool) -> str:
    hidden = sum(one.kind in _HIDDEN for one in found.differences)
    parts = (
        [f"of two specs, {escape_line(found.a.spec)} and {escape_line(found.b.spec)}"]
        if found.a.spec != found.b.spec
        else []
    )
    parts += [_counted(found.equal_count, "reading is alike", "readings are alike")]
    parts += (
        [
            _counted(
                len(found.one_sided_keys),
                "was taken on one side only",
                "were taken on one side only",
            )
        ]
        if found.one_sided_keys
        else []
    )
    words = "in the surroundings", "left out (--all)"
    parts += (
        [
            _counted(
                hidden,
                "that differs {} is {}".format(*words),
                "that differ {} are {}".format(*words),
            )
        ]
        if hidden and not everything
        else []
    )
    return ", ".join(parts)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _clipped(words: str, width: int, most: int | None) -> list[str]:
    rows = wrap(escape_line(words), width)
    return (
        rows
        if most is None or len(rows) <= most
        else [
            *rows[: most - 1],
            truncate(rows[most - 1] + " " * width, width).rstrip(" .") + ELLIPSIS,
        ]
    )


def _field(word: str, words: str, width: int, most: int | None) -> Iterator[str]:
    if words:
        first, *rest = _clipped(words, width - _LEAD, most)
        yield f"  {word:<{_LEAD - 2}}{first}"
        yield from (" " * _LEAD + row for row in rest)


def _markdown_lines(found: ReportComparison) -> Iterator[str]:
    a, b = escape_markdown(found.a.name), escape_markdown(found.b.name)
    yield f"### {a} and {b}\n\n{escape_markdown(summarize_comparison(found))}\n"
    if found.check_changes:
        yield f"| check | {a} | {b} | why | differs |\n|---|---|---|---|---|"
        for turn in found.check_changes:
            causes = "; ".join(
                [
                    *filter(None, [describe_expected_values(turn, found)]),
                    *(describe_difference(one) for one in turn.causes[:2]),
                ]
            )
            yield (
                "| "
                + " | ".join(
                    escape_markdown(part)
                    for part in (f"{turn.id} {turn.title}", turn.a, turn.b, turn.message, causes)
                )
                + " |"
            )
        yield ""
    for pair in (*found.failing_on_both, *found.one_sided_failures):
        yield escape_markdown(_failing_check(found, pair)) + "\n"
    if found.differences:
        yield f"| reading | {a} | {b} | means |\n|---|---|---|---|"
        for one in found.differences:
            name = one.key + format_derived_count(one)
            yield (
                "| "
                + " | ".join(
                    escape_markdown(part)
                    for part in (
                        name,
                        format_value(one.key, one.a),
                        format_value(one.key, one.b),
                        one.kind.value,
                    )
                )
                + " |"
            )
        yield ""
    yield _rest(found, everything=True)


def _check_change(turn: CheckChange) -> dict[str, Any]:
    return {
        **turn._asdict(),
        "breaks": turn.breaks,
        "causes": [_difference(one) for one in turn.causes],
        "followers": list(turn.followers),
        "declared": list(turn.declared),
    }


def _difference(one: ReadingDifference) -> dict[str, Any]:
    return {
        "key": one.key,
        "class": one.kind.value,
        "a": one.a,
        "b": one.b,
        "followers": list(one.followers),
    }
