"""Suggested combinations as text and as data, with their changes, losses and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.diagnostics import Diagnostic
from provision.spelling import pluralize
from provision.suggest.candidates import SpecChange
from provision.suggest.search import (
    AssessedSuggestion,
    Suggestion,
    SuggestionResult,
    SuggestionStatus,
)
from provision.views.diagnostics.source_location import redact_line
from provision.views.formatting import Style, Styler, indent_rest, wrap

VERSION = 1
_EVIDENCE_NOTE = (
    "rules only: nothing was resolved or run. Without --no-resolve, uv resolves the packages "
    "if the network is available; `provision apply` verifies them."
)


def render_text(result: SuggestionResult, color: bool, width: int) -> str:
    """Return the combinations for a terminal, best first."""
    return "\n".join(_lines(result, Styler(color), max(40, width))) + "\n"


def to_json(result: SuggestionResult) -> dict[str, Any]:
    """Return the combinations as data."""
    return {
        "version": VERSION,
        "for": result.name,
        "combinations": [_combination(assessed) for assessed in result.combinations],
        "in_the_way": [_finding(finding) for finding in result.in_the_way],
        "tried": result.tried,
    }


def _combination(assessed: AssessedSuggestion) -> dict[str, Any]:
    suggestion = assessed.suggestion
    candidate = suggestion.candidate
    return {
        "python": candidate.python,
        "cuda": candidate.cuda,
        "packages": [package.requirement for package in suggestion.spec.packages],
        "precision": candidate.precision.value,
        "changes": [
            {
                **change._asdict(),
                "route": list(change.route),
                "gives_up": change.gives_up or None,
            }
            for change in suggestion.changes
        ],
        "evidence": assessed.evidence.value,
        "note": assessed.note,
        "remarks": [_finding(remark) for remark in suggestion.remarks],
    }


def _finding(finding: Diagnostic) -> dict[str, str]:
    return {
        "id": finding.id,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "help": finding.help,
    }


def _lines(result: SuggestionResult, styler: Styler, width: int) -> Iterator[str]:
    yield from (styler(row, Style.STRONG) for row in wrap(_headline(result), width))
    for number, assessed in enumerate(result.combinations, start=1):
        yield ""
        yield from _shown(number, assessed, styler, width, written=result.written)
    if result.in_the_way:
        yield ""
        yield styler("Errors that changing versions cannot fix:", Style.ERROR)
        for finding in result.in_the_way:
            yield from _wrapped(
                f"  {finding.id} ",
                f"{redact_line(finding.message)}; {redact_line(finding.help)}",
                width,
            )
    if any(
        assessed.evidence is SuggestionStatus.RULES and not assessed.note
        for assessed in result.combinations
    ):
        yield ""
        yield from (styler(row, Style.FAINT) for row in wrap(_EVIDENCE_NOTE, width))


def _headline(result: SuggestionResult) -> str:
    refused = sum(assessed.is_refused for assessed in result.combinations)
    count, name = len(result.combinations) - refused, f"for {redact_line(result.name)}"
    if not result.combinations:
        return f"None of the {result.tried} combinations that were tried is free of errors, {name}"
    errors = "with no other errors" if result.in_the_way else "without errors"
    good = f"{pluralize(count, 'combination')} {errors}" if count else f"No combination {errors}"
    if refused:
        good += f"; {pluralize(refused, 'combination')} rejected after resolving"
    return f"{good}, {name}"


def _shown(
    number: int, assessed: AssessedSuggestion, styler: Styler, width: int, *, written: bool
) -> Iterator[str]:
    suggestion, candidate = assessed.suggestion, assessed.suggestion.candidate
    versions = [f"Python {candidate.python}"]
    if candidate.torch:
        versions.append(f"torch {candidate.torch}")
    if candidate.transformers:
        versions.append(f"transformers {candidate.transformers}")
    if candidate.cuda not in ("auto", "none"):
        versions.append(f"CUDA {candidate.cuda}")
    lead = f"{styler(str(number), Style.STRONG)}  "
    yield from _wrapped(lead, f"{', '.join(versions)}  [{assessed.evidence}]", width)
    if assessed.note:
        yield from _wrapped("     ", redact_line(" ".join(assessed.note.split())), width)
    if not suggestion.changes:
        yield "     no change to the spec" if written else "     as requested"
    for change in suggestion.changes:
        yield from _wrapped("     ", _change(change), width)
    if exact := _exact(suggestion):
        yield from _wrapped("     exactly: ", exact, width)
    if suggestion.gives_up:
        yield from _wrapped(
            "     gives up ", ", ".join(redact_line(lost) for lost in suggestion.gives_up), width
        )
    for remark in suggestion.remarks:
        yield from _wrapped(
            f"     {styler(remark.severity.value, Style.WARNING)} ",
            f"{remark.id}: {redact_line(remark.message)}; {redact_line(remark.help)}",
            width,
        )


def _exact(suggestion: Suggestion) -> str:
    """Return the pins that make the combination and are not changes of the spec."""
    changed = {change.now for change in suggestion.changes}
    pinned = [
        package.requirement
        for package in suggestion.spec.packages
        if package.version.startswith("==") and package.requirement not in changed
    ]
    return ", ".join(redact_line(requirement) for requirement in pinned)


def _change(change: SpecChange) -> str:
    where = ".".join(part for part in change.route if isinstance(part, str))
    if not change.was:
        return f"{where}: set {redact_line(change.now)}"
    return (
        f"{where}: {redact_line(change.was)} -> {redact_line(change.now)}"
        if change.now
        else f"{where}: remove {redact_line(change.was)}"
    )


def _wrapped(lead: str, text: str, width: int) -> Iterator[str]:
    indent = len(lead) - len(lead.lstrip()) + 2
    return indent_rest(lead, wrap(text, width - len(lead)), indent)
