"""A spec's data into a Spec, or each thing wrong with its shape into a finding at the right characters."""

from __future__ import annotations

import re
from dataclasses import replace

from pydantic import ValidationError

from provision.diagnostics import At, Diagnostic, Place
from provision.source.document import Source
from provision.source.findings import finding
from provision.source.locating import Problem, located, quotable
from provision.source.packaged import mistaken
from provision.source.problems import explain
from provision.spec import Spec

MOST_SHOWN = 100
"""Findings about the shape of one spec; whoever has more has one mistake made often (our choice)."""


def validate(source: Source) -> tuple[Spec | None, tuple[Diagnostic, ...]]:
    """Return the spec and nothing, or None and what is wrong with its shape.

    A document that has no data, because its text is broken, gives (None, ()): its findings are in `source.diagnostics`, which callers look at in any case.
    """
    if source.data is None:
        return None, ()
    data = {"name": name_of(source), **source.data}
    try:
        return Spec.model_validate(data), ()
    except RecursionError:
        # packaging reads markers by recursion, a level for each parenthesis.
        return None, (finding("bad-format", "the marker of a package is nested too deeply", Place(("packages",)), hint="write it without parentheses"),)
    except ValidationError as error:
        problems = located(source, data, error)
    return None, _findings(source, problems)


def name_of(source: Source) -> str:
    """Return the name that a spec without one goes by: its file's stem, made to fit."""
    return re.sub(r"[^a-z0-9]+", "-", source.path.stem.lower()).strip("-")[:63].strip("-") or "environment"


def _findings(source: Source, problems: list[Problem]) -> tuple[Diagnostic, ...]:
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
    return one if one.fix is None or (isinstance(one.where, Place) and source.is_own(one.where.route)) else replace(one, fix=None)


def _identity(source: Source, problem: Problem, one: Diagnostic) -> tuple[object, ...]:
    """Return what two findings have in common that are one: the same text seen through several aliases, or several members of a union."""
    found = None if source.tree is None else source.tree.find(problem.route)
    which: object = problem.route if found is None or not found.shared else id(found.node)
    at = one.where.at if isinstance(one.where, Place) else At.VALUE
    return (which, at, one.id, problem.rest if problem.type == "missing" else ())
