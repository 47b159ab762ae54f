"""Suggested combinations as text and as data, with their changes, losses and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.diagnostics import Diagnostic
from provision.suggest.candidates import SpecChange
from provision.suggest.search import (
    AssessedSuggestion,
    Suggestion,
    SuggestionResult,
    SuggestionStatus,
)
from provision.views.diagnostics.source_location import redact_line
from provision.views.formatting import Style, Styler, indent_rest, pluralize, wrap

VERSION = 1
_EVIDENCE_NOTE = (
    "rules only: nothing was resolved or run; --resolve asks uv, which needs the network, and "
    "`provision apply` verifies."
)


def render_text(offer: SuggestionResult, color: bool, width: int) -> str:
    """Return the combinations for a terminal, best first."""
    return "\n".join(_lines(offer, Styler(color), max(40, width))) + "\n"


def to_json(offer: SuggestionResult) -> dict[str, Any]:
    """Return the combinations as data."""
    return {
        "version": VERSION,
        "for": offer.name,
        "combinations": [_combination(one) for one in offer.combinations],
        "in_the_way": [_finding(one) for one in offer.in_the_way],
        "tried": offer.tried,
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


def _lines(offer: SuggestionResult, pen: Styler, width: int) -> Iterator[str]:
    yield from (pen(row, Style.STRONG) for row in wrap(_headline(offer), width))
    for number, backed in enumerate(offer.combinations, start=1):
        yield ""
        yield from _shown(number, backed, pen, width, written=offer.written)
    if offer.in_the_way:
        yield ""
        yield pen("Errors that no choice of versions mends:", Style.ERROR)
        for finding in offer.in_the_way:
            yield from _wrapped(
                f"  {finding.id} ",
                f"{redact_line(finding.message)}; {redact_line(finding.help)}",
                width,
            )
    if any(
        backed.evidence is SuggestionStatus.RULES and not backed.note
        for backed in offer.combinations
    ):
        yield ""
        yield from (pen(row, Style.FAINT) for row in wrap(_EVIDENCE_NOTE, width))


def _headline(offer: SuggestionResult) -> str:
    count = len(offer.combinations)
    name = f"for {redact_line(offer.name)}"
    if not count:
        return (
            f"No combination without an error was found among the {offer.tried} that were "
            f"tried, {name}"
        )
    rule = "other rule" if offer.in_the_way else "rule"
    return f"{pluralize(count, 'combination')} in which no {rule} finds an error, {name}"


def _shown(
    number: int, backed: AssessedSuggestion, pen: Styler, width: int, *, written: bool
) -> Iterator[str]:
    one, candidate = backed.suggestion, backed.suggestion.candidate
    versions = [f"Python {candidate.python}"]
    if candidate.torch:
        versions.append(f"torch {candidate.torch}")
    if candidate.transformers:
        versions.append(f"transformers {candidate.transformers}")
    if candidate.cuda not in ("auto", "none"):
        versions.append(f"CUDA {candidate.cuda}")
    lead = f"{pen(str(number), Style.STRONG)}  "
    yield from _wrapped(lead, f"{', '.join(versions)}  [{backed.evidence}]", width)
    if backed.note:
        yield from _wrapped("     ", redact_line(" ".join(backed.note.split())), width)
    if not one.changes:
        yield "     changes nothing in the spec" if written else "     as it was asked"
    for change in one.changes:
        yield from _wrapped("     ", _change(change), width)
    if exact := _exact(one):
        yield from _wrapped("     exactly: ", exact, width)
    if one.gives_up:
        yield from _wrapped(
            "     gives up ", ", ".join(redact_line(lost) for lost in one.gives_up), width
        )
    for remark in one.remarks:
        yield from _wrapped(
            f"     {pen(remark.severity.value, Style.WARNING)} ",
            f"{remark.id}: {redact_line(remark.message)}; {redact_line(remark.help)}",
            width,
        )


def _exact(one: Suggestion) -> str:
    """Return the pins that make the combination and are not changes of the spec."""
    changed = {change.now for change in one.changes}
    pinned = [
        package.requirement
        for package in one.spec.packages
        if package.version.startswith("==") and package.requirement not in changed
    ]
    return ", ".join(redact_line(requirement) for requirement in pinned)


def _change(change: SpecChange) -> str:
    where = ".".join(part for part in change.route if isinstance(part, str))
    if not change.was:
        return f"{where}: write {redact_line(change.now)}"
    return (
        f"{where}: {redact_line(change.was)} becomes {redact_line(change.now)}"
        if change.now
        else f"{where}: without {redact_line(change.was)}"
    )


def _wrapped(lead: str, text: str, width: int) -> Iterator[str]:
    indent = len(lead) - len(lead.lstrip()) + 2
    return indent_rest(lead, wrap(text, width - len(lead)), indent)
