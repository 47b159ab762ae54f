"""A comparison in words: one sentence, and each difference in a few words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.judging.judgement import format_bytes
from provision.agent.probe.model import ReadingClass, Status
from provision.verification.diff.model import (
    CheckChange,
    CheckPair,
    ReadingDifference,
    ReportComparison,
)

_OPAQUE_READINGS = ("packages.digest", "driver.error")
"""Readings whose values say little to a person: the words of the check that they make fail say
more.
"""
_MAX_NAMED = 3


def summarize_comparison(found: ReportComparison) -> str:
    """Return the comparison in one sentence: the difference that matters where something fails,
    without a full stop at its end.
    """
    changed = (
        f"{' and '.join(found.tampered)} proves nothing, changed after the probe wrote "
        f"{'it' if len(found.tampered) == 1 else 'them'}: "
    )
    return (changed if found.tampered else "") + _sentence(found)


def _sentence(found: ReportComparison) -> str:
    broken = [turn for turn in found.check_changes if turn.breaks]
    if broken:
        return _broken(found, broken)
    a, b = found.a.name, found.b.name
    if found.is_same:
        alone = "".join(
            f"; {describe_one_sided_failure(pair, found)}"
            for pair in found.one_sided_failures[:_MAX_NAMED]
        )
        return (
            f"{a} and {b} are the same environment: no identity reading and no check "
            f"differs{alone}{_failing(found)}"
        )
    differing = ", ".join(_list_differences(found))
    if found.is_comparable and not differing:
        return f"what {a} and {b} say does not differ{_failing(found)}"
    apart = differing + _failing(found)
    if not found.is_comparable:
        return f"{a} and {b} cannot be compared: no identity reading was taken on both" + (
            f"; {apart.removeprefix('; ')}" if apart else ""
        )
    return f"{a} and {b} are not the same: {apart}"


def describe_difference(one: ReadingDifference) -> str:
    """Return a difference as words, as in "package.torch 2.11.0+cu128 -> 2.13.0+cpu (and 17 that
    follow)".
    """
    return (
        f"{one.key.removesuffix('_bytes')} {format_value(one.key, one.a)} -> "
        f"{format_value(one.key, one.b)}{format_derived_count(one)}"
    )


def format_derived_count(one: ReadingDifference) -> str:
    """Return how many differences follow from one, in brackets; "" where none does."""
    count = len(one.followers)
    return f" (and {count} that follow{'s' if count == 1 else ''})" if count else ""


def format_value(key: str, value: Any) -> str:
    """Return a reading's value in at most 60 characters."""
    if value is None:
        return "absent"
    if key.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    value = (
        [f"{name} {one}" for name, one in value.items()] if isinstance(value, Mapping) else value
    )
    text = (
        (", ".join(str(part) for part in value) or "none")
        if isinstance(value, list)
        else str(value)
    )
    text = text[:19] if text.startswith("sha256:") else text
    return text if len(text) <= 60 else f"{text[:57]}..."


def describe_expected_values(turn: CheckChange, found: ReportComparison) -> str:
    """Return what each side was expected to be, where that sets them apart; "" elsewhere."""
    causes = next((check.causes for check in CHECKS if check.id == turn.id.partition(":")[0]), ())
    sizes = [cause.endswith("_bytes") for cause in causes if not cause.endswith("_state")]
    unit = "_bytes" if sizes and all(sizes) else ""
    sides = zip(turn.declared, (found.a, found.b), strict=True) if turn.declared else ()
    return ", ".join(f"{format_value(unit, value)} on {side.name}" for value, side in sides)


def describe_one_sided_failure(one: CheckChange | CheckPair, found: ReportComparison) -> str:
    """Return that a check fails on one side, and what it is on the other, where it neither holds
    nor fails.
    """
    here, there, status = (
        (found.a.name, found.b.name, one.b)
        if one.a == Status.FAIL
        else (found.b.name, found.a.name, one.a)
    )
    how = {Status.UNKNOWN.value: "is unknown on", "": "was not asked of"}.get(
        status, "does not apply to"
    )
    return f"{one.id} {one.title} fails on {here} and {how} {there}"


def _broken(found: ReportComparison, broken: Sequence[CheckChange]) -> str:
    """The first check that breaks, how many more do on the same side, what explains it, and what
    fails on the other side only.
    """
    first = broken[0]
    alike = [turn for turn in broken if turn.worse == first.worse]
    rest = [turn for turn in broken if turn.worse != first.worse]
    works, fails = (
        (found.a.name, found.b.name) if first.worse == "b" else (found.b.name, found.a.name)
    )
    more = (
        f"; so {'does' if len(alike) == 2 else 'do'} {len(alike) - 1} more"
        if len(alike) > 1
        else ""
    )
    back = (
        f"; {_first(rest)} {'fails' if len(rest) == 1 else 'fail'} on {works} only" if rest else ""
    )
    return (
        f"works on {works}, fails on {fails}: {first.id} {first.title}{more}; the difference "
        f"that matters: {_decisive_difference(first, found)}{back}"
    )


def _decisive_difference(turn: CheckChange, found: ReportComparison) -> str:
    if turn.declared:
        return f"what is declared, {describe_expected_values(turn, found)}"
    if not turn.causes and found.a.lock != found.b.lock and turn.message:
        return turn.message  # of what is locked on one side only, nothing is recorded on the other
    if not turn.causes:
        return (
            "none that is recorded of both explains "
            f"this{f' ({turn.message})' if turn.message else ''}"
        )
    first = turn.causes[0]
    if first.key in _OPAQUE_READINGS and turn.message:
        return turn.message
    return describe_difference(first if turn.worse == "b" else first._replace(a=first.b, b=first.a))


def _list_differences(found: ReportComparison) -> Iterator[str]:
    """Yield what sets two apart where nothing works on one and fails on the other: a failure that
    the other was not asked for, other statuses, identity.
    """
    turns = [turn for turn in found.check_changes if Status.FAIL in (turn.a, turn.b)]
    failing: list[CheckChange | CheckPair] = [*turns, *found.one_sided_failures]
    yield from (describe_one_sided_failure(one, found) for one in failing[:_MAX_NAMED])
    both: list[CheckChange | CheckPair] = [*found.check_changes, *found.one_sided_failures]
    others = [one for one in both if one not in failing[:_MAX_NAMED]]
    if others:
        listed = ", ".join(one.id for one in others[:_MAX_NAMED]) + (
            " ..." if len(others) > _MAX_NAMED else ""
        )
        yield f"{len(others)} check{'s' if len(others) != 1 else ''} ended otherwise ({listed})"
    identity = [one for one in found.differences if one.kind is ReadingClass.IDENTITY]
    if identity:
        many = (
            f"{len(identity)} differences of identity, first"
            if len(identity) > 1
            else "1 difference of identity:"
        )
        what = "other packages are installed, by " if identity[0].key == _OPAQUE_READINGS[0] else ""
        yield f"{many} {what}{describe_difference(identity[0])}"


def _failing(found: ReportComparison) -> str:
    if found.failing_on_both:
        return (
            f"; {_first(found.failing_on_both)} "
            f"{'fails' if len(found.failing_on_both) == 1 else 'fail'} on both"
        )
    return (
        ""
        if found.is_same
        or found.one_sided_failures
        or any(Status.FAIL in (turn.a, turn.b) for turn in found.check_changes)
        else "; no check fails"
    )


def _first(checks: Sequence[Any]) -> str:
    return f"{checks[0].id} {checks[0].title}".strip() + (
        f" and {len(checks) - 1} more" if len(checks) > 1 else ""
    )
