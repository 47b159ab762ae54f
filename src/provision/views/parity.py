"""What is proven equal across targets, for a terminal, as Markdown and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.safe import safe_line
from provision.verification.parity import Found, Parity, Side, Statement
from provision.views.ink import Ink, Pen, wrap
from provision.views.markdown import literal

VERSION = 1
_LEAD = 13
_WORDS = {Found.EQUAL: "equal", Found.APART: "as declared", Found.DIFFERS: "DIFFERS", Found.UNPROVEN: "not yet"}
_INKS = {Found.EQUAL: Ink.GOOD, Found.APART: Ink.GOOD, Found.DIFFERS: Ink.ERROR, Found.UNPROVEN: Ink.WARNING}


def text(found: Parity, color: bool, width: int) -> str:
    """Return the statements for a terminal, `width` cells wide."""
    return "\n".join(_lines(found, Pen(color), max(50, width))) + "\n"


def markdown(found: Parity) -> str:
    """Return the statements as Markdown, for a comment or a ticket."""
    return "\n".join(_marked(found)) + "\n"


def document(found: Parity) -> dict[str, Any]:
    """Return the statements as data."""
    return {
        "version": VERSION,
        "result": found.result.value,
        "sentence": headline(found),
        "targets": [_target(side) for side in found.sides],
        "statements": [_statement(one) for one in found.statements],
        "undeclared": list(found.undeclared),
    }


def headline(found: Parity) -> str:
    """Return all of it in one sentence."""
    names = ", ".join(side.target for side in found.sides)
    if found.result is Found.EQUAL:
        return f"{names}: all that is declared is proven{_simulated(found)}"
    chosen = [one.subject for one in found.statements if one.found is found.result]
    word = "proven to differ" if found.result is Found.DIFFERS else "not yet proven"
    return f"{names}: {word}: {', '.join(chosen)}{_simulated(found)}"


def _simulated(found: Parity) -> str:
    names = [side.target for side in found.sides if side.standing.value == "simulated"]
    return f" (simulated: {', '.join(names)})" if names else ""


def _lines(found: Parity, pen: Pen, width: int) -> Iterator[str]:
    yield from (pen(row, _INKS[found.result]) for row in wrap(safe_line(headline(found)), width))
    yield ""
    for side in found.sides:
        yield from _field(side.target, _stands(side), width, pen, None)
    yield ""
    for one in found.statements:
        yield from _field(_WORDS[one.found], _says(one), width, pen, _INKS[one.found])
    for words in found.undeclared[:3]:
        yield from _field("undeclared", words, width, pen, None)
    if len(found.undeclared) > 3:
        yield f"{'':<{_LEAD}}(+{len(found.undeclared) - 3} more that no lock speaks of: --output-format json)"
    ways = [side.prove for side in found.sides if side.prove]
    if ways:
        yield ""
    for way in ways:  # a command is never broken
        yield from _field("to prove", way, max(width, len(way) + _LEAD), pen, None)


def _stands(side: Side) -> str:
    word = side.standing.value + (f" on {side.at}" if side.at else "")
    return f"{side.kind}, {word}" + (", by a probe that was carried there" if side.carried else "") + (f": {side.why}" if side.why else "")


def _says(one: Statement) -> str:
    on: dict[str, list[str]] = {}
    for target, value in one.observed.items():
        on.setdefault(value, []).append(target)
    if one.found is Found.EQUAL and len(on) == 1 and len(one.observed) > 1:
        seen = f"{next(iter(on))} on each"
    else:
        seen = ", ".join(f"{value} on {' and '.join(targets)}" for value, targets in on.items())
    return f"{one.subject}: {one.declared}" + (f"; seen: {seen}" if seen else "") + (f"; {one.why}" if one.why else "")


def _field(word: str, words: str, width: int, pen: Pen, ink: Ink | None) -> Iterator[str]:
    head = safe_line(word)
    first, *rest = wrap(safe_line(words), width - max(_LEAD, len(head) + 1)) or [""]
    yield pen(head, ink) + " " * max(1, _LEAD - len(head)) + first
    yield from (" " * _LEAD + row for row in rest)


def _marked(found: Parity) -> Iterator[str]:
    yield f"### {literal(headline(found))}\n\n| target | kind | stands | how to prove it |\n|---|---|---|---|"
    for side in found.sides:
        yield "| " + " | ".join(literal(part) for part in (side.target, side.kind, _stands(side).partition(", ")[2], side.prove)) + " |"
    yield "\n| statement | found | declared | seen | why |\n|---|---|---|---|---|"
    for one in found.statements:
        seen = "; ".join(f"{target}: {value}" for target, value in one.observed.items())
        yield "| " + " | ".join(literal(part) for part in (one.subject, _WORDS[one.found], one.declared, seen, one.why)) + " |"
    for words in found.undeclared:
        yield f"\nundeclared: {literal(words)}"


def _target(side: Side) -> dict[str, Any]:
    told = {key: getattr(side, key) for key in ("target", "kind", "why", "prove", "carried", "at")}
    return {**told, "standing": side.standing.value, "identity": side.report.identity if side.report is not None else None}


def _statement(one: Statement) -> dict[str, Any]:
    return {"subject": one.subject, "found": one.found.value, "declared": one.declared, "observed": dict(one.observed), "why": one.why}
