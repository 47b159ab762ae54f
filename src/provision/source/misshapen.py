"""What pydantic says is wrong with a spec's shape, as findings: each thing once, at the right characters, not more than a person reads."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from provision.diagnostics import At, Diagnostic, Place
from provision.source.document import Source
from provision.source.findings import finding
from provision.source.locating import Problem, located, quotable
from provision.source.packaged import mistaken
from provision.source.problems import explain

MOST_SHOWN = 100
"""Findings about the shape of one spec; whoever has more has one mistake made often (our choice)."""


def findings(source: Source, data: dict[str, Any], error: ValidationError) -> tuple[Diagnostic, ...]:
    """Return what `error` says of `data`, the spec's data as it was validated."""
    problems = located(source, data, error)
    found, settled = mistaken(source)
    quotes = quotable(problems)
    incomplete = any(diagnostic.id.startswith("REF") for diagnostic in source.diagnostics)
    seen: set[tuple[object, ...]] = set()
    left = len(problems)
    for problem in problems:
        if len(found) > MOST_SHOWN:
            break
        left -= 1
        # What a file that could not be read would have said is not missing.
        if problem.route[:2] in settled or problem.route in settled or (incomplete and problem.type == "missing"):
            continue
        one = _as_it_can_be_mended(source, explain(problem, quotes))
        mark = _identity(source, problem, one)
        if mark not in seen:
            seen.add(mark)
            found.append(one)
    if len(found) <= MOST_SHOWN:
        return tuple(found)
    rest = f"up to {len(found) - MOST_SHOWN + left} more findings about the shape of the spec are not shown"
    return (*found[:MOST_SHOWN], finding("more-findings", rest, Place(()), hint="mend the first of them and check again"))


def _as_it_can_be_mended(source: Source, one: Diagnostic) -> Diagnostic:
    """Return the finding without its fix where the value is not the spec's alone to change."""
    return one if one.fix is None or (isinstance(one.where, Place) and source.is_own(one.where.route)) else one._replace(fix=None)


def _identity(source: Source, problem: Problem, one: Diagnostic) -> tuple[object, ...]:
    """Return what two findings have in common that are one: the same text seen through several aliases, or several members of a union."""
    found = None if source.tree is None else source.tree.find(problem.route)
    which: object = problem.route if found is None or not found.shared else id(found.node)
    at = one.where.at if isinstance(one.where, Place) else At.VALUE
    return (which, at, one.id, problem.rest if problem.type == "missing" else ())
