"""What pydantic says is wrong with a spec's shape, as findings: each thing once, at the right
characters, not more than a person reads.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from provision.diagnostics import Diagnostic, RouteLocation, RoutePart
from provision.source.document import Source
from provision.source.findings import make_finding
from provision.source.package_mistakes import find_package_mistakes
from provision.source.pydantic_errors import LocatedError, find_unquoted_scalars, locate_errors
from provision.source.schema_messages import explain_error

MAX_FINDINGS = 100
"""Findings about the shape of one spec; whoever has more has one mistake made often (our choice)."""  # noqa: E501


def to_findings(
    source: Source, data: dict[str, Any], error: ValidationError
) -> tuple[Diagnostic, ...]:
    """Return what `error` says of `data`, the spec's data as it was validated."""
    problems = locate_errors(source, data, error)
    found, settled = find_package_mistakes(source)
    quotes = find_unquoted_scalars(problems)
    incomplete = any(diagnostic.id.startswith("REF") for diagnostic in source.diagnostics)
    seen: set[tuple[object, ...]] = set()
    left = len(problems)
    for problem in problems:
        if len(found) > MAX_FINDINGS:
            break
        left -= 1
        # What a file that could not be read would have said is not missing.
        if (
            problem.route[:2] in settled
            or problem.route in settled
            or (incomplete and problem.type == "missing")
        ):
            continue
        one = _without_unsafe_fix(source, explain_error(problem, quotes))
        mark = _identity(source, problem, one)
        if mark not in seen:
            seen.add(mark)
            found.append(one)
    if len(found) <= MAX_FINDINGS:
        return tuple(found)
    rest = (
        f"up to {len(found) - MAX_FINDINGS + left} more findings about the shape of the spec "
        "are not shown"
    )
    return (
        *found[:MAX_FINDINGS],
        make_finding(
            "more-findings", rest, RouteLocation(()), hint="mend the first of them and check again"
        ),
    )


def _without_unsafe_fix(source: Source, one: Diagnostic) -> Diagnostic:
    """Return the finding without its fix where the value is not the spec's alone to change."""
    return (
        one
        if one.fix is None
        or (isinstance(one.where, RouteLocation) and source.is_editable(one.where.route))
        else one._replace(fix=None)
    )


def _identity(source: Source, problem: LocatedError, one: Diagnostic) -> tuple[object, ...]:
    """Return what two findings have in common that are one: the same text seen through several
    aliases, or several members of a union.
    """
    found = None if source.tree is None else source.tree.find(problem.route)
    which: object = problem.route if found is None or not found.shared else id(found.node)
    at = one.where.part if isinstance(one.where, RouteLocation) else RoutePart.VALUE
    return (which, at, one.id, problem.rest if problem.type == "missing" else ())
