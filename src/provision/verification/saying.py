"""A comparison in words: one sentence, and each difference in a few words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.probe.checks import CHECKS
from provision.probe.judging.cases import size
from provision.probe.values import ReadingClass, Status
from provision.verification.compared import Comparison, Difference, Pair, Turn

_OPAQUE = ("packages.digest", "driver.error")
"""Readings whose values say little to a person: the words of the check that they make fail say more."""
_NAMED = 3


def sentence(found: Comparison) -> str:
    """Return the comparison in one sentence: the difference that matters where something fails, without a full stop at its end."""
    changed = f"{' and '.join(found.changed)} proves nothing, changed after the probe wrote {'it' if len(found.changed) == 1 else 'them'}: "
    return (changed if found.changed else "") + _sentence(found)


def _sentence(found: Comparison) -> str:
    broken = [turn for turn in found.turns if turn.breaks]
    if broken:
        return _broken(found, broken)
    a, b = found.a.name, found.b.name
    if found.same:
        alone = "".join(f"; {one_fails(pair, found)}" for pair in found.unasked[:_NAMED])
        return f"{a} and {b} are the same environment: no identity reading and no check differs{alone}{_failing(found)}"
    differing = ", ".join(_apart(found))
    if found.compared and not differing:
        return f"what {a} and {b} say does not differ{_failing(found)}"
    apart = differing + _failing(found)
    if not found.compared:
        return f"{a} and {b} cannot be compared: no identity reading was taken on both" + (f"; {apart.removeprefix('; ')}" if apart else "")
    return f"{a} and {b} are not the same: {apart}"


def spoken(one: Difference) -> str:
    """Return a difference as words, as in "package.torch 2.11.0+cu128 -> 2.13.0+cpu (and 17 that follow)"."""
    return f"{one.key.removesuffix('_bytes')} {told(one.key, one.a)} -> {told(one.key, one.b)}{followed(one)}"


def followed(one: Difference) -> str:
    """Return how many differences follow from one, in brackets; "" where none does."""
    count = len(one.followers)
    return f" (and {count} that follow{'s' if count == 1 else ''})" if count else ""


def told(key: str, value: Any) -> str:
    """Return a reading's value in at most 60 characters."""
    if value is None:
        return "absent"
    if key.endswith("_bytes") and isinstance(value, int):
        return size(value)
    value = [f"{name} {one}" for name, one in value.items()] if isinstance(value, Mapping) else value
    text = (", ".join(str(part) for part in value) or "none") if isinstance(value, list) else str(value)
    text = text[:19] if text.startswith("sha256:") else text
    return text if len(text) <= 60 else f"{text[:57]}..."


def declared(turn: Turn, found: Comparison) -> str:
    """Return what each side was expected to be, where that sets them apart; "" elsewhere."""
    causes = next((check.causes for check in CHECKS if check.id == turn.id.partition(":")[0]), ())
    sizes = [cause.endswith("_bytes") for cause in causes if not cause.endswith("_state")]
    unit = "_bytes" if sizes and all(sizes) else ""
    sides = zip(turn.declared, (found.a, found.b), strict=True) if turn.declared else ()
    return ", ".join(f"{told(unit, value)} on {side.name}" for value, side in sides)


def one_fails(one: Turn | Pair, found: Comparison) -> str:
    """Return that a check fails on one side, and what it is on the other, where it neither holds nor fails."""
    here, there, status = (found.a.name, found.b.name, one.b) if one.a == Status.FAIL else (found.b.name, found.a.name, one.a)
    how = {Status.UNKNOWN.value: "is unknown on", "": "was not asked of"}.get(status, "does not apply to")
    return f"{one.id} {one.title} fails on {here} and {how} {there}"


def _broken(found: Comparison, broken: Sequence[Turn]) -> str:
    """The first check that breaks, how many more do on the same side, what explains it, and what fails on the other side only."""
    first = broken[0]
    alike = [turn for turn in broken if turn.worse == first.worse]
    rest = [turn for turn in broken if turn.worse != first.worse]
    works, fails = (found.a.name, found.b.name) if first.worse == "b" else (found.b.name, found.a.name)
    more = f"; so {'does' if len(alike) == 2 else 'do'} {len(alike) - 1} more" if len(alike) > 1 else ""
    back = f"; {_first(rest)} {'fails' if len(rest) == 1 else 'fail'} on {works} only" if rest else ""
    return f"works on {works}, fails on {fails}: {first.id} {first.title}{more}; the difference that matters: {_matter(first, found)}{back}"


def _matter(turn: Turn, found: Comparison) -> str:
    if turn.declared:
        return f"what is declared, {declared(turn, found)}"
    if not turn.causes and found.a.lock != found.b.lock and turn.message:
        return turn.message  # of what is locked on one side only, nothing is recorded on the other
    if not turn.causes:
        return f"none that is recorded of both explains this{f' ({turn.message})' if turn.message else ''}"
    first = turn.causes[0]
    if first.key in _OPAQUE and turn.message:
        return turn.message
    return spoken(first if turn.worse == "b" else first._replace(a=first.b, b=first.a))


def _apart(found: Comparison) -> Iterator[str]:
    """Yield what sets two apart where nothing works on one and fails on the other: a failure that the other was not asked for, other statuses, identity."""
    turns = [turn for turn in found.turns if Status.FAIL in (turn.a, turn.b)]
    failing: list[Turn | Pair] = [*turns, *found.unasked]
    yield from (one_fails(one, found) for one in failing[:_NAMED])
    both: list[Turn | Pair] = [*found.turns, *found.unasked]
    others = [one for one in both if one not in failing[:_NAMED]]
    if others:
        listed = ", ".join(one.id for one in others[:_NAMED]) + (" ..." if len(others) > _NAMED else "")
        yield f"{len(others)} check{'s' if len(others) != 1 else ''} ended otherwise ({listed})"
    identity = [one for one in found.differences if one.kind is ReadingClass.IDENTITY]
    if identity:
        many = f"{len(identity)} differences of identity, first" if len(identity) > 1 else "1 difference of identity:"
        what = "other packages are installed, by " if identity[0].key == _OPAQUE[0] else ""
        yield f"{many} {what}{spoken(identity[0])}"


def _failing(found: Comparison) -> str:
    if found.failing:
        return f"; {_first(found.failing)} {'fails' if len(found.failing) == 1 else 'fail'} on both"
    return "" if found.same or found.unasked or any(Status.FAIL in (turn.a, turn.b) for turn in found.turns) else "; no check fails"


def _first(checks: Sequence[Any]) -> str:
    return f"{checks[0].id} {checks[0].title}".strip() + (f" and {len(checks) - 1} more" if len(checks) > 1 else "")
