"""Two reports side by side: what ended otherwise and what explains it, for a terminal, as Markdown and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from provision.probe.values import ReadingClass, Status
from provision.safe import safe_line
from provision.verification.compared import Comparison, Difference, Pair, Turn
from provision.verification.saying import declared, followed, one_fails, sentence, spoken, told
from provision.views.ink import ELLIPSIS, Ink, Pen, fit, wrap
from provision.views.markdown import literal

VERSION = 1
SCREEN = 25
"""Rows without `everything`: one screen of the smallest terminal in use (80 x 25)."""


class _Share(NamedTuple):
    """How many checks are told in full, how many checks and differences at all, and in how many rows each text (None: all of it)."""

    full: int | None = None
    few: int | None = None
    rows: int | None = None


_ALL = _Share()
_SHARES = (_Share(2, 6, 6), _Share(2, 6, 3), _Share(1, 6, 3), _Share(1, 4, 3), _Share(1, 3, 2), _Share(1, 1, 1))
"""The first of these that fits a screen is taken; the last one always does."""
_LEAD = 12
_HIDDEN = (ReadingClass.CONTEXT, ReadingClass.IDENTITY_WEAK)


def text(found: Comparison, color: bool, width: int, everything: bool) -> str:
    """Return the comparison for a terminal, `width` cells wide; with `everything` each difference."""
    pen, width = Pen(color), max(40, width)
    told = [list(_lines(found, pen, width, share)) for share in ((_ALL,) if everything else _SHARES)]
    return "\n".join(next((rows for rows in told if len(rows) <= SCREEN), told[-1])) + "\n"


def markdown(found: Comparison) -> str:
    """Return the comparison as Markdown, for a comment or a ticket."""
    return "\n".join(_marked(found)) + "\n"


def document(found: Comparison) -> dict[str, Any]:
    """Return the comparison as data."""
    return {
        "version": VERSION,
        "same": found.same,
        "changed": list(found.changed),
        "sentence": sentence(found),
        "a": found.a._asdict(),
        "b": found.b._asdict(),
        "checks": [_turn(turn) for turn in found.turns],
        "failing": [{"id": pair.id, "title": pair.title, "a": pair.told[0], "b": pair.told[1]} for pair in found.failing],
        "differences": [_difference(one) for one in found.differences],
        "only_in_one": list(found.onesided),
        "alike": found.alike,
    }


def _lines(found: Comparison, pen: Pen, width: int, share: _Share) -> Iterator[str]:
    everything = share == _ALL
    good = found.same and not (found.failing or found.unasked)
    ink = Ink.ERROR if any(turn.breaks for turn in found.turns) else Ink.GOOD if good else Ink.WARNING
    yield from (pen(row, ink) for row in _clipped(sentence(found), width, share.rows))
    yield from _checks(found, width, share)
    shown = [one for one in found.differences if everything or one.kind not in _HIDDEN]
    if shown:
        yield ""
    for one in shown[: share.few]:
        yield fit(f"  {one.kind.value:<14} {safe_line(spoken(one))}", width)
    if share.few is not None and len(shown) > share.few:
        yield f"  (+{len(shown) - share.few} more: --all)"
    yield ""
    yield from wrap(_rest(found, everything), width)


def _checks(found: Comparison, width: int, share: _Share) -> Iterator[str]:
    """Checks that ended otherwise, some of them in full, and those that fail on both sides: in a row each."""
    whole = True
    failing = [turn for turn in found.turns if Status.FAIL in (turn.a, turn.b)]
    told: list[Turn | Pair] = [*failing, *found.failing, *found.unasked, *(turn for turn in found.turns if turn not in failing)]
    for place, one in enumerate(told[: share.few]):
        before, whole = whole, isinstance(one, Turn) and (share.full is None or (place < share.full and (one.breaks or not place)))
        if before and not whole:
            yield ""
        if isinstance(one, Pair):
            yield fit(safe_line(_alone(found, one)), width)
        elif whole:
            yield from _whole(found, one, width, share.rows)
        else:
            yield fit(_head(found, one) + f": {safe_line(one.message)}", width)
    if share.few is not None and len(told) > share.few:
        yield f"(+{len(told) - share.few} more: --all)"


def _alone(found: Comparison, pair: Pair) -> str:
    """Return what a check says that fails on both sides, or on the one that was asked."""
    one, other = pair.told
    if "" in (pair.a, pair.b):
        return f"{one_fails(pair, found)}: {one or other}"
    return f"{pair.id} {pair.title} fails on both: " + (one if one == other else f"{one} ({found.a.name}), {other} ({found.b.name})")


def _whole(found: Comparison, turn: Turn, width: int, most: int | None) -> Iterator[str]:
    yield ""
    yield from _clipped(_head(found, turn), width, most)
    yield from _field("why", turn.message, width, most)
    yield from _field("declared", declared(turn, found), width, most)
    for one in turn.causes[:3]:
        yield from _field("differs", spoken(one), width, most)
    yield from _field("fix", turn.fix, width, most)


def _head(found: Comparison, turn: Turn) -> str:
    return safe_line(f"{turn.id} {turn.title}: {found.a.name} {turn.a}, {found.b.name} {turn.b}")


def _rest(found: Comparison, everything: bool) -> str:
    hidden = sum(one.kind in _HIDDEN for one in found.differences)
    parts = [f"of two specs, {safe_line(found.a.spec)} and {safe_line(found.b.spec)}"] if found.a.spec != found.b.spec else []
    parts += [_counted(found.alike, "reading is alike", "readings are alike")]
    parts += [_counted(len(found.onesided), "was taken on one side only", "were taken on one side only")] if found.onesided else []
    words = "in the surroundings", "left out (--all)"
    parts += [_counted(hidden, "that differs {} is {}".format(*words), "that differ {} are {}".format(*words))] if hidden and not everything else []
    return ", ".join(parts)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _clipped(words: str, width: int, most: int | None) -> list[str]:
    rows = wrap(safe_line(words), width)
    return rows if most is None or len(rows) <= most else [*rows[: most - 1], fit(rows[most - 1] + " " * width, width).rstrip(" .") + ELLIPSIS]


def _field(word: str, words: str, width: int, most: int | None) -> Iterator[str]:
    if words:
        first, *rest = _clipped(words, width - _LEAD, most)
        yield f"  {word:<{_LEAD - 2}}{first}"
        yield from (" " * _LEAD + row for row in rest)


def _marked(found: Comparison) -> Iterator[str]:
    a, b = literal(found.a.name), literal(found.b.name)
    yield f"### {a} and {b}\n\n{literal(sentence(found))}\n"
    if found.turns:
        yield f"| check | {a} | {b} | why | differs |\n|---|---|---|---|---|"
        for turn in found.turns:
            causes = "; ".join([*filter(None, [declared(turn, found)]), *(spoken(one) for one in turn.causes[:2])])
            yield "| " + " | ".join(literal(part) for part in (f"{turn.id} {turn.title}", turn.a, turn.b, turn.message, causes)) + " |"
        yield ""
    for pair in (*found.failing, *found.unasked):
        yield literal(_alone(found, pair)) + "\n"
    if found.differences:
        yield f"| reading | {a} | {b} | means |\n|---|---|---|---|"
        for one in found.differences:
            name = one.key + followed(one)
            yield "| " + " | ".join(literal(part) for part in (name, told(one.key, one.a), told(one.key, one.b), one.kind.value)) + " |"
        yield ""
    yield _rest(found, everything=True)


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        **turn._asdict(),
        "breaks": turn.breaks,
        "causes": [_difference(one) for one in turn.causes],
        "followers": list(turn.followers),
        "declared": list(turn.declared),
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {"key": one.key, "class": one.kind.value, "a": one.a, "b": one.b, "followers": list(one.followers)}
