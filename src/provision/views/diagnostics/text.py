"""Findings for a terminal: sorted, a frame or a line each, with counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from provision.diagnostics import Applicability, Diagnostic, Severity
from provision.views.diagnostics.source_location import SourceText, format_location, redact_line
from provision.views.formatting import pluralize

_RANKS = list(Severity)
_NO_FINDINGS = "No findings."


def render_findings(
    diagnostics: Sequence[Diagnostic],
    source: SourceText,
    color: bool,
    width: int,
    with_footer: bool = True,
) -> str:
    """Return a frame for each finding, sorted, and the counts; `width` in cells.

    It has no control characters but newlines and our colors.
    """
    frames = _frames(diagnostics, source, color, width) if diagnostics else []
    return "\n".join(
        [*frames, render_footer(diagnostics, count_fixable(diagnostics, source)) + "\n"]
        if with_footer
        else frames
    )


def render_concise(diagnostics: Sequence[Diagnostic], source: SourceText) -> str:
    """Return a line per finding for editors and grep: `file:line:column: severity ID message`."""
    return "".join(
        f"{format_location(source.span(d.where))}: {d.severity} {d.id} {redact_line(d.message)}\n"
        for d in sort_findings(diagnostics, source)
    )


def render_footer(diagnostics: Sequence[Diagnostic], fixable: int) -> str:
    """Return the last line: findings by severity, and how many `--fix` would remove."""
    counts = [
        _counted(sum(d.severity is severity for d in diagnostics), severity) for severity in _RANKS
    ]
    said = ", ".join(count for count in counts if count)
    return (f"Found {said}." if said else _NO_FINDINGS) + (
        f" [*] {fixable} fixable with --fix." if fixable else ""
    )


def count_fixable(diagnostics: Iterable[Diagnostic], source: SourceText) -> int:
    """Return how many findings have a safe fix that applies.

    Fixes do not touch extended files and values that other places share.
    """
    return sum(
        d.fix is not None
        and d.fix.applicability is Applicability.SAFE
        and bool(source.apply_fixes((d.fix,)))
        for d in diagnostics
    )


def sort_findings(diagnostics: Iterable[Diagnostic], source: SourceText) -> list[Diagnostic]:
    """Return the findings by file, place, severity and id."""
    return sorted(
        diagnostics,
        key=lambda d: (
            source.span(d.where).file,
            source.span(d.where).start,
            _RANKS.index(d.severity),
            d.id,
            d.message,
        ),
    )


def _frames(
    diagnostics: Sequence[Diagnostic], source: SourceText, color: bool, width: int
) -> list[str]:
    from provision.views.diagnostics import frame as frames  # here: a clean spec is read without it

    sheet = frames.make_frame_context(diagnostics, source, color, width)
    return [
        "\n".join(frames.render_frame(d, sheet)) + "\n" for d in sort_findings(diagnostics, source)
    ]


def _counted(count: int, severity: Severity) -> str:
    match severity:
        case _ if not count:
            return ""
        case Severity.ERROR | Severity.WARNING:
            return pluralize(count, severity.value)
        case Severity.UNKNOWN:
            return f"{count} unknown"
        case Severity.INFO:
            return pluralize(count, "note")
        case _:
            assert_never(severity)
