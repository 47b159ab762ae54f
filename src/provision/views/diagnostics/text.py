"""Findings for a terminal: sorted, in full or a line each, with counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from provision.diagnostics import (
    Applicability,
    Diagnostic,
    Severity,
    SuppressedFinding,
    SuppressionKind,
)
from provision.spelling import join_words, pluralize
from provision.views.diagnostics.source_location import (
    COUNTED,
    SEVERITY_LABELS,
    FindingSource,
    format_location,
    redact_line,
)

_RANKS = list(Severity)
_SUPPRESSED = {
    SuppressionKind.COMMENT: "accepted by comments",
    SuppressionKind.CONFIGURATION: "accepted by the configuration",
    SuppressionKind.BASELINE: "in the baseline",
    SuppressionKind.BASE: "not from this change",
}


def render_findings(
    diagnostics: Sequence[Diagnostic],
    source: FindingSource,
    color: bool,
    width: int,
    with_footer: bool = True,
) -> str:
    """Return each finding in full, sorted, and the counts; `width` in cells.

    It has no control characters but newlines and our colors.
    """
    parts: list[str] = []
    if diagnostics:
        # Imported here: a clean spec does not need it.
        from provision.views.diagnostics.full_finding import render_in_full

        ordered = sort_findings(diagnostics, source)
        parts = [text + "\n" for text in render_in_full(ordered, source, color, width)]
    if with_footer:
        parts.append(render_footer(diagnostics, count_fixable(diagnostics, source)) + "\n")
    return "\n".join(parts)


def render_concise(diagnostics: Sequence[Diagnostic], source: FindingSource) -> str:
    """Return a line per finding for editors and grep: `file:line:column: severity ID message`."""
    return "".join(
        f"{format_location(source.span(d.where))}: {d.severity} {d.id} {redact_line(d.message)}\n"
        for d in sort_findings(diagnostics, source)
    )


def render_footer(
    diagnostics: Sequence[Diagnostic],
    fixable: int,
    suppressed: Sequence[SuppressedFinding] = (),
    fixed: int | None = None,
    *,
    only_new: bool = False,
) -> str:
    """Return the last line: findings by severity, fixable, suppressed and fixed ones.

    `fixed` is the number of findings of another revision that are gone, None without one. With
    `only_new` the findings are called new.
    """
    counts = Counter(finding.severity for finding in diagnostics)
    new = "new " if only_new else ""
    parts = []
    for severity in filter(counts.__getitem__, Severity):
        word = new + COUNTED.get(severity, SEVERITY_LABELS[severity][0])
        parts.append(pluralize(counts[severity], word))
    footer = f"Found {join_words(parts)}." if parts else f"No {new}findings."
    if fixable:
        footer += f" [*] {fixable} fixable with --fix."
    for kind, number in sorted(Counter(item.kind for item in suppressed).items()):
        footer += f" {number} {_SUPPRESSED[kind]}."
    if fixed:
        footer += f" {fixed} fixed."
    return footer


def render_statistics(diagnostics: Iterable[Diagnostic]) -> str:
    """Return a line for each rule with findings, the most frequent rule first."""
    counts = Counter((item.id, item.name) for item in diagnostics)
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    width = max((len(str(count)) for count in counts.values()), default=1)
    return "".join(f"{count:>{width}}  {rule}  {name}\n" for (rule, name), count in rows)


def count_fixable(diagnostics: Iterable[Diagnostic], source: FindingSource) -> int:
    """Return how many findings have a safe fix that applies.

    Fixes do not touch extended files and values that other places share.
    """
    return sum(
        d.fix is not None
        and d.fix.applicability is Applicability.SAFE
        and bool(source.apply_fixes((d.fix,)))
        for d in diagnostics
    )


def sort_findings(diagnostics: Iterable[Diagnostic], source: FindingSource) -> list[Diagnostic]:
    """Return the findings by file, place, severity and id; cell 2 comes before cell 10."""
    return sorted(
        diagnostics,
        key=lambda d: (
            _file_key(source.span(d.where).file),
            source.span(d.where).start,
            _RANKS.index(d.severity),
            d.id,
            d.message,
        ),
    )


def _file_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts the numbers in names of files and cells as numbers."""
    parts = re.split(r"([0-9]{1,9})", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
