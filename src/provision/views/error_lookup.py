"""What an error means, for a terminal and as data: the likeliest explanation in full, the others in
a row each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from provision.diagnostics import Diagnostic
from provision.sanitize import escape_line
from provision.verification.error_lookup.symptoms import Explanation, is_offered_fix
from provision.views.terminal_text import Style, Styler, truncate, wrap

VERSION = 1
_LEAD = 12


def render_text(
    found: Sequence[Explanation],
    color: bool,
    width: int,
    held_against: str,
    unknown: str = "",
    *,
    mended: bool = False,
) -> str:
    """Return the explanations for a terminal; `held_against` names the spec and the report that
    were looked at, "" where there were none.

    `unknown` is the error that ended the program, where none of them is of it; `mended` tells
    that edits were made, and are shown beside it.
    """
    return (
        "\n".join(
            _lines(found, Styler(color), max(40, width), held_against, unknown, mended=mended)
        )
        + "\n"
    )


def to_json(found: Sequence[Explanation], unknown: str = "") -> dict[str, Any]:
    """Return the explanations as data, the likeliest first; docs/why.md says what each key holds."""  # noqa: E501
    return {
        "version": VERSION,
        "unknown": unknown,
        "explanations": [_explanation(one) for one in found],
    }


def _lines(
    found: Sequence[Explanation],
    pen: Styler,
    width: int,
    held_against: str,
    unknown: str,
    *,
    mended: bool,
) -> Iterator[str]:
    if not found:
        yield pen("no symptom that provision knows is in this text", Style.WARNING)
        yield from wrap(
            "That says nothing of its cause. `provision lint` and `provision verify` look "
            "at the spec and the device without it.",
            width,
        )
        return
    if unknown:
        yield pen(truncate(f"not known: {escape_line(unknown)}", width), Style.WARNING)
        yield from wrap(
            "That error ended the program. What is known in this text stands before it, "
            "and need not be its cause:",
            width,
        )
        yield ""
    first, *others = found
    yield truncate(
        pen(escape_line(first.line), Style.STRONG)
        if len(first.line) < width
        else escape_line(first.line),
        width,
    )
    yield ""
    yield from _field("means", first.symptom.cause, width)
    for place, remark in enumerate(first.remarks):
        yield from _field("it says" if place == 0 else "", remark, width)
    for finding in first.findings:
        yield from _field("here", f"{finding.id} {finding.message}", width)
        yield from _field("", finding.help, width)
        if finding.fix is not None and is_offered_fix(finding, likeliest=True) and not mended:
            yield from _field("edit", f"{finding.fix.title} (--fix does it)", width)
    for check in first.checks:
        yield from _field(
            "here", f"{check.get('id')} {check.get('title')}: {check.get('message')}", width
        )
        yield from _field("", str(check.get("fix") or ""), width)
    if held_against and not first.is_confirmed:
        yield from _field(
            "here", f"neither a finding nor a failed check in {held_against} says so", width
        )
    yield from _field("helps", first.symptom.fix, width)
    yield from _field(
        "source",
        f"{first.symptom.evidence.source} ({first.symptom.evidence.confidence} confidence)",
        width,
    )
    if others:
        yield ""
    for one in others:
        mark = "also here" if one.is_confirmed else "also"
        yield from _field(mark, f"{one.symptom.cause}: {one.symptom.fix}", width)


def _field(word: str, words: str, width: int) -> Iterator[str]:
    if words:
        first, *rest = wrap(escape_line(words), width - _LEAD)
        yield f"  {word:<{_LEAD - 2}}{first}"
        yield from (" " * _LEAD + row for row in rest)


def _explanation(one: Explanation) -> dict[str, Any]:
    symptom = one.symptom
    evidence = {
        "source": symptom.evidence.source,
        "as_of": symptom.evidence.as_of,
        "confidence": symptom.evidence.confidence,
    }
    return {
        "id": symptom.id,
        "line": one.line,
        "said": list(one.matched_groups),
        "remarks": list(one.remarks),
        "means": symptom.cause,
        "helps": symptom.fix,
        "fits": one.is_confirmed,
        "findings": [_finding(finding) for finding in one.findings],
        "checks": [
            {key: check.get(key) for key in ("id", "title", "status", "message", "fix")}
            for check in one.checks
        ],
        **evidence,
    }


def _finding(finding: Diagnostic) -> dict[str, Any]:
    fix = (
        None
        if finding.fix is None
        else {"title": finding.fix.title, "applicability": finding.fix.applicability.value}
    )
    return {"id": finding.id, "message": finding.message, "help": finding.help, "fix": fix}
