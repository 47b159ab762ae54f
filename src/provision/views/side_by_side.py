"""Two reports beside each other as one self-contained page: the difference that matters first, then readings and checks, aligned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provision.probe.values import ReadingClass, Status
from provision.safe import redact, safe_line
from provision.verification.compared import Aligned, Comparison, Difference, Pair, Turn
from provision.verification.saying import declared, sentence, spoken, told
from provision.views import comparison
from provision.views.html import drawn

_MEANS = {
    ReadingClass.IDENTITY: "has to be equal for the two to be the same environment",
    ReadingClass.EXACT: "a hash, equal where everything that decides it is",
    ReadingClass.MEASUREMENT: "compared within a band",
    ReadingClass.IDENTITY_WEAK: "seldom matters: a patch release, a build",
    ReadingClass.CONTEXT: "the surroundings",
}
_ORDER = tuple(_MEANS)


@dataclass(frozen=True, slots=True)
class Row:
    """A reading of both sides as it is shown; `mark` says whether it differs. `bars` are the shares of the longer value, for measurements."""

    key: str
    a: str
    b: str
    mark: str
    bars: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A difference with what follows from it; `explains` names the checks that it can explain."""

    key: str
    kind: str
    a: str
    b: str
    explains: str
    followers: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Told:
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
class Checked:
    """A check of both sides: what each says, or what both say."""

    id: str
    title: str
    a: Status | None
    b: Status | None
    says: tuple[str, ...]
    differs: bool


def page(found: Comparison) -> str:
    """Return the page of a comparison. Every string in it is safe and escaped."""
    shown = {row.key: _row(row) for row in found.readings}
    broken, other = ([_told(turn, found) for turn in found.turns if turn.breaks is breaks] for breaks in (True, False))
    return drawn(
        "diff.html.j2",
        a=_side(found.a._asdict()),
        b=_side(found.b._asdict()),
        headline=_headline(found),
        tone="failed" if broken else "verified" if found.same and not (found.failing or found.unasked) else "unverified",
        sentence=_text(sentence(found)),
        broken=broken,
        other=other,
        failing=[_checked(pair) for pair in (*found.failing, *found.unasked)],
        ranked=[_ranked(one, found, shown) for one in found.differences],
        classes=[(kind.value, _MEANS[kind], rows) for kind in _ORDER if (rows := [shown[row.key] for row in found.readings if row.kind is kind])],
        checks=[_checked(pair) for pair in found.checks],
        raw=redact(json.dumps(comparison.document(found), indent=1, ensure_ascii=True)),
        alike=found.alike,
        onesided=len(found.onesided),
    )


def _headline(found: Comparison) -> str:
    if any(turn.breaks for turn in found.turns):
        return "WORKS ON ONE, FAILS ON THE OTHER"
    return "THE SAME ENVIRONMENT" if found.same else "PROVES NOTHING" if found.changed else "NOT THE SAME" if found.compared else "CANNOT BE COMPARED"


def _side(side: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(str(value)) for name, value in side.items()}


def _told(turn: Turn, found: Comparison) -> Told:
    return Told(
        id=_text(turn.id),
        title=_text(turn.title),
        a=_status(turn.a),
        b=_status(turn.b),
        message=_text(turn.message),
        fix=_text(turn.fix),
        causes=tuple(_text(spoken(one)) for one in turn.causes),
        declared=_text(declared(turn, found)),
        followers=tuple(map(_text, turn.followers)),
    )


def _ranked(one: Difference, found: Comparison, shown: Mapping[str, Row]) -> Ranked:
    explains = ", ".join(_text(turn.id) for turn in found.turns if turn.breaks and one.key in [cause.key for cause in turn.causes])
    followers = tuple(shown[key] for key in one.followers)
    return Ranked(_text(one.key), one.kind.value, _text(told(one.key, one.a)), _text(told(one.key, one.b)), explains, followers)


def _row(row: Aligned) -> Row:
    mark = {True: "differs", False: "alike", None: "one side only"}[row.differs]
    absent = row.differs is None
    a, b = ("" if absent and value is None else _text(told(row.key, value)) for value in (row.a, row.b))
    return Row(_text(row.key), a, b, mark, _bars(row))


def _bars(row: Aligned) -> tuple[float, float] | None:
    """Return both values as percent of the longer one."""
    values = [value for value in (row.a, row.b) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300]
    if row.kind is not ReadingClass.MEASUREMENT or len(values) < 2 or not max(values):
        return None
    return round(100 * values[0] / max(values), 1), round(100 * values[1] / max(values), 1)


def _checked(pair: Pair) -> Checked:
    a, b = (_text(words) for words in pair.told)
    says = tuple(_both(a, b))
    return Checked(_text(pair.id), _text(pair.title), _status(pair.a), _status(pair.b), says, pair.a != pair.b)


def _both(a: str, b: str) -> Iterator[str]:
    if a == b or not a or not b:
        yield a or b
    else:
        yield f"A: {a}"
        yield f"B: {b}"


def _status(word: str) -> Status | None:
    """Return the status; a word that is none of them could not be read, which is unknown."""
    return next((status for status in Status if status.value == word), Status.UNKNOWN) if word else None


def _text(text: str) -> str:
    return safe_line(redact(text))
