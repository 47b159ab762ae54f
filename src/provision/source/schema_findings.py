"""Findings about the shape of a spec: pydantic's errors without repetition, limited in number."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from provision.diagnostics import Diagnostic, RouteLocation, RoutePart
from provision.kinds import Registry
from provision.source.document import Source
from provision.source.findings import make_finding
from provision.source.package_mistakes import find_package_mistakes
from provision.source.pydantic_errors import LocatedError, find_unquoted_scalars, locate_errors
from provision.source.schema_messages import explain_error

MAX_FINDINGS = 100
"""Findings about the shape of a spec: more are usually a single mistake repeated (our choice)."""


def to_findings(
    source: Source, data: dict[str, Any], error: ValidationError, registry: Registry
) -> tuple[Diagnostic, ...]:
    """Return the findings for a pydantic error; `data` is the validated data of the spec."""
    problems = locate_errors(source, data, error, registry)
    findings, settled = find_package_mistakes(source)
    quotes = find_unquoted_scalars(problems)
    incomplete = any(diagnostic.id.startswith("REF") for diagnostic in source.diagnostics)
    seen: set[tuple[object, ...]] = set()
    remaining = len(problems)
    for problem in problems:
        if len(findings) > MAX_FINDINGS:
            break
        remaining -= 1
        if problem.route[:2] in settled or problem.route in settled:
            continue
        # A key may be in an extended file that could not be read.
        if incomplete and problem.type == "missing":
            continue
        finding = _without_unsafe_fix(source, explain_error(problem, quotes))
        identity = _identity(source, problem, finding)
        if identity not in seen:
            seen.add(identity)
            findings.append(finding)
    if len(findings) <= MAX_FINDINGS:
        return tuple(findings)
    hidden = len(findings) - MAX_FINDINGS + remaining
    message = f"up to {hidden} more errors of this kind are not shown"
    hint = "fix the errors above and check again"
    last = make_finding("more-findings", message, RouteLocation(()), hint=hint)
    return (*findings[:MAX_FINDINGS], last)


def _without_unsafe_fix(source: Source, finding: Diagnostic) -> Diagnostic:
    """Return the finding without its fix if other values share the text that the fix changes."""
    if isinstance(finding.where, RouteLocation) and source.is_editable(finding.where.route):
        return finding
    return finding._replace(fix=None)


def _identity(source: Source, problem: LocatedError, finding: Diagnostic) -> tuple[object, ...]:
    """Return a key that is equal for findings to merge.

    They concern the same text through several aliases, or several members of a union.
    """
    value = source.tree.find(problem.route) if source.tree else None
    subject: object = id(value.node) if value and value.shared else problem.route
    part = finding.where.part if isinstance(finding.where, RouteLocation) else RoutePart.VALUE
    return (subject, part, finding.id, problem.rest if problem.type == "missing" else ())
