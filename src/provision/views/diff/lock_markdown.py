"""Lock comparison as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Severity
from provision.lock.diff import LockReview
from provision.views.diagnostics.source_location import FindingSource
from provision.views.diagnostics.text import sort_findings
from provision.views.diff.lock_text import (
    change_symbol,
    describe_consequence,
    describe_file_changes,
    describe_finding,
    describe_finding_with_help,
    describe_no_changes,
    describe_package_change,
    describe_target_change,
    describe_value_change,
    summarize_packages,
)
from provision.views.markdown import escape_markdown, table_row

MAX_TABLE_CHARACTERS = 60_000
"""Code points of the table: GitHub refuses a comment above 65,536 ("Body is too long")."""

_Section = tuple[str, list[tuple[Severity | None, str]]]
"""A title, and rows of a severity and a text."""


def render_comment(review: LockReview, source: FindingSource) -> str:
    """Return the changes as Markdown: decisive ones first, packages in a table."""
    lines = [f"### Lock: {escape_markdown(review.old)} → {escape_markdown(review.new)}\n"]
    if review.comparison.is_empty:
        lines.append(describe_no_changes(review) + "\n")
    else:
        lines.append(escape_markdown(summarize_packages(review)) + "\n")
    for section in _decisive_sections(review, source):
        lines += _list(section)
    lines += _package_table(review)
    for section in _other_sections(review, source):
        lines += _list(section)
    if review.other_cards:
        lines.append("<details><summary>Cards that the spec does not name</summary>\n")
        lines += [f"- {escape_markdown(meaning.text)}" for meaning in review.other_cards]
        lines.append("\n</details>\n")
    return "\n".join(lines)


def _decisive_sections(review: LockReview, source: FindingSource) -> Iterator[_Section]:
    yield (
        "By the facts",
        [
            (one.meaning.severity, describe_consequence(one.meaning, one.targets))
            for one in review.consequences
        ],
    )
    findings = sort_findings(review.new_findings, source)
    yield (
        "Found by the rules since",
        [(one.severity, describe_finding_with_help(one, source)) for one in findings],
    )
    yield (
        "The same version with other files",
        [
            (Severity.WARNING if one.suspicious else None, describe_file_changes(one))
            for one in review.comparison.files
        ],
    )


def _other_sections(review: LockReview, source: FindingSource) -> Iterator[_Section]:
    diff = review.comparison
    if diff.python:
        yield "Python", [(None, f"{diff.python.old} -> {diff.python.new}")]
    yield (
        "Targets",
        [
            (None, f"{change_symbol(one.old, one.new)} {describe_target_change(one)}")
            for one in diff.targets
        ],
    )
    for title, changes in (("Indexes", diff.indexes), ("The spec asks otherwise", diff.inputs)):
        yield (
            title,
            [
                (None, f"{change_symbol(one.old, one.new)} {describe_value_change(one)}")
                for one in changes
            ],
        )
    settled = sort_findings(review.resolved_findings, source)
    yield "Settled", [(None, describe_finding(one, source)) for one in settled]


def _package_table(review: LockReview) -> Iterator[str]:
    changes = review.comparison.packages
    if not changes:
        return
    yield "| | package | before | after | |\n|---|---|---|---|---|"
    remaining = MAX_TABLE_CHARACTERS
    for number, change in enumerate(changes):
        symbol = change_symbol(change.old, change.new)
        row = table_row(symbol, change.name, *describe_package_change(change))
        remaining -= len(row) + 1
        if remaining < 0:
            yield f"\nand {len(changes) - number} more, which do not fit into a comment"
            break
        yield row
    yield ""


def _list(section: _Section) -> list[str]:
    title, rows = section
    if not rows:
        return []
    lines = [f"**{title}**\n"]
    for severity, text in rows:
        label = f"**{severity.value}** " if severity else ""
        lines.append(f"- {label}{escape_markdown(text)}")
    return [*lines, ""]
