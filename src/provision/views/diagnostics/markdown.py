"""Findings as Markdown, for the summary of a CI job or a comment on a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from provision.diagnostics import Severity
from provision.spelling import pluralize
from provision.target_changes import ChangedTarget
from provision.views.diagnostics.findings_in_files import CheckedFiles
from provision.views.markdown import escape_markdown, table_row

if TYPE_CHECKING:
    from provision.facts.machines import MachineOffer

MAX_BYTES = 60_000
"""Bytes; a comment of GitHub has at most 65,536 characters."""
_RULE = "|---|---|---|---|"
_PRICES = (
    "Prices are on-demand prices without disks and traffic. A target is replaced if it was "
    "applied from the other revision."
)
_RANKS = list(Severity)
_WORDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.UNKNOWN: "unknown value",
    Severity.INFO: "note",
}


def render_markdown(files: CheckedFiles) -> str:
    """Return the counts, the files that could not be read, and a list of findings by severity."""
    located = sorted(files.located(), key=lambda item: _RANKS.index(item[0].severity))
    counts = Counter(finding.severity for finding, _, _ in located)
    parts = [pluralize(counts[severity], _WORDS[severity]) for severity in Severity]
    shown = [part for severity, part in zip(Severity, parts, strict=True) if counts[severity]]
    text = f"### provision lint: {', '.join(shown) or 'no findings'}\n\n"
    also = [f"{files.hidden} accepted or not new"] if files.hidden else []
    also += [f"{files.fixed} fixed"] if files.fixed else []
    if also:
        text += f"Also: {', '.join(also)}.\n\n"
    rows = [
        f"- **not checked** {escape_markdown(files.path(name))}: {escape_markdown(error.what)}"
        for name, error in files.unread
    ]
    for finding, span, _ in located:
        place = escape_markdown(f"{files.path(span.file)}:{span.start.line}:{span.start.column}")
        row = f"- **{finding.severity.value}** {finding.id} {place}: "
        help_text = f" *{escape_markdown(finding.help)}*" if finding.help else ""
        rows.append(f"{row}{escape_markdown(finding.message)}{help_text}")
    for number, row in enumerate(rows):
        if len((text + row).encode()) > MAX_BYTES:
            return f"{text}\n{len(rows) - number} more are not listed.\n"
        text += row + "\n"
    return text + _render_targets(files.targets)


def _render_targets(changes: Sequence[ChangedTarget]) -> str:
    """Return a table of targets with another price, and of those that replaced."""
    if not changes:
        return ""
    rows = [
        table_row(
            change.address,
            _describe_offer(change.before, absent=change.is_new),
            _describe_offer(change.after, absent=change.is_removed),
            ", ".join(change.replaced_fields) or "no",
        )
        for change in changes
    ]
    head = [table_row("target", "price before", "price after", "would be replaced"), _RULE]
    return "\n".join(["", "#### Targets", "", *head, *rows, "", _PRICES, ""])


def _describe_offer(offer: MachineOffer | None, *, absent: bool) -> str:
    if offer is None:
        return "no target" if absent else "unknown"
    return f"${offer.dollars:.2f} per hour ({offer.machine.name}, {offer.region})"
