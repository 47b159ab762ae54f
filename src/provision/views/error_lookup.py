"""Explanations of an error, for a terminal and as data: the likeliest in full, others in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from provision.diagnostics import Diagnostic
from provision.sanitize import escape_line
from provision.verification.error_lookup.symptoms import Explanation, is_offered_fix
from provision.views.formatting import LABEL_WIDTH, Style, Styler, labeled_rows, truncate, wrap

VERSION = 1
_MIN_WIDTH = 40
_NO_SYMPTOM = (
    "Its cause may still be in the spec or on the device; check these with `provision lint` "
    "and `provision verify`."
)
_UNEXPLAINED = (
    "This error ended the program. The known errors below were printed before it and may be "
    "unrelated:"
)


def render_text(
    explanations: Sequence[Explanation],
    color: bool,
    width: int,
    compared_with: str,
    unexplained: str = "",
    *,
    fixed: bool = False,
) -> str:
    """Return the explanations for a terminal.

    Args:
        explanations: The explanations, the likeliest first.
        color: Use colors.
        width: Cells of a line.
        compared_with: The names of the spec and the report, "" without either.
        unexplained: The error that ended the program if no explanation is about it.
        fixed: Edits were made, and are shown elsewhere.
    """
    styler, width = Styler(color), max(_MIN_WIDTH, width)
    lines: list[str] = []
    if not explanations:
        lines = [
            styler("no known error found in this text", Style.WARNING),
            *wrap(_NO_SYMPTOM, width),
        ]
    elif unexplained:
        title = truncate(f"unknown error: {escape_line(unexplained)}", width)
        lines = [styler(title, Style.WARNING), *wrap(_UNEXPLAINED, width), ""]
    for number, explanation in enumerate(explanations):
        if not number:
            lines += _lines(explanation, styler, width, compared_with, fixed=fixed)
            continue
        if number == 1:
            lines.append("")
        label = "confirmed" if explanation.is_confirmed else "also"
        lines += _field(label, f"{explanation.symptom.cause}: {explanation.symptom.fix}", width)
    return "\n".join(lines) + "\n"


def to_json(explanations: Sequence[Explanation], unexplained: str = "") -> dict[str, Any]:
    """Return the explanations as data; docs/how-to/explain-errors.md describes each key."""
    return {
        "version": VERSION,
        "unknown": unexplained,
        "explanations": [_explanation(explanation) for explanation in explanations],
    }


def _lines(
    first: Explanation, styler: Styler, width: int, compared_with: str, *, fixed: bool
) -> Iterator[str]:
    """Yield the lines of the likeliest explanation."""
    line, evidence = escape_line(first.line), first.symptom.evidence
    # A line that is cut has no color: the cut would lose its end.
    yield truncate(styler(line, Style.STRONG) if len(first.line) < width else line, width)
    yield ""
    yield from _field("means", first.symptom.cause, width)
    for number, remark in enumerate(first.remarks):
        yield from _field("" if number else "details", remark, width)
    for finding in first.findings:
        yield from _field("confirmed", f"{finding.id} {finding.message}", width)
        yield from _field("", finding.help, width)
        if finding.fix is not None and is_offered_fix(finding, likeliest=True) and not fixed:
            yield from _field("edit", f"{finding.fix.title} (apply it with --fix)", width)
    for check in first.checks:
        yield from _field("confirmed", f"{check.id} {check.title}: {check.message}", width)
        yield from _field("", check.fix, width)
    for confirmation in first.confirmations:
        yield from _field("confirmed", confirmation, width)
    if compared_with and not first.is_confirmed:
        text = f"no finding or failed check in {compared_with} confirms it"
        yield from _field("checked", text, width)
    yield from _field("fix", first.symptom.fix, width)
    yield from _field("source", f"{evidence.source} ({evidence.confidence} confidence)", width)


def _field(label: str, text: str, width: int) -> Iterator[str]:
    if text:
        yield from labeled_rows(label, wrap(escape_line(text), width - LABEL_WIDTH))


def _explanation(explanation: Explanation) -> dict[str, Any]:
    symptom = explanation.symptom
    return {
        "id": symptom.id,
        "line": explanation.line,
        "said": list(explanation.matched_groups),
        "remarks": list(explanation.remarks),
        "means": symptom.cause,
        "helps": symptom.fix,
        "fits": explanation.is_confirmed,
        "confirmations": list(explanation.confirmations),
        "findings": [_finding(finding) for finding in explanation.findings],
        "checks": [
            {
                "id": check.id,
                "title": check.title,
                "status": check.status.value,
                "message": check.message,
                "fix": check.fix or None,
            }
            for check in explanation.checks
        ],
        "source": symptom.evidence.source,
        "as_of": symptom.evidence.as_of,
        "confidence": symptom.evidence.confidence,
    }


def _finding(finding: Diagnostic) -> dict[str, Any]:
    fix = None
    if finding.fix is not None:
        applicability = finding.fix.applicability.value
        fix = {"title": finding.fix.title, "applicability": applicability}
    return {"id": finding.id, "message": finding.message, "help": finding.help, "fix": fix}
