"""Lock comparison as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Severity
from provision.lock.diff import LockReview
from provision.views.diagnostics.source_location import FindingSource
from provision.views.diff.lock_text import (
    Section,
    change_symbol,
    decisive_sections,
    describe_no_changes,
    describe_package_change,
    other_sections,
    summarize_packages,
)
from provision.views.markdown import escape_markdown, table_row

MAX_TABLE_CHARACTERS = 60_000
"""Code points of the table: GitHub refuses a comment above 65,536 ("Body is too long")."""


def render_comment(review: LockReview, source: FindingSource) -> str:
    """Return the changes as Markdown: decisive ones first, packages in a table."""
    lines = [f"### Lock: {escape_markdown(review.old)} → {escape_markdown(review.new)}\n"]
    if review.comparison.is_empty:
        lines.append(describe_no_changes(review) + "\n")
    else:
        lines.append(escape_markdown(summarize_packages(review)) + "\n")
    for section in decisive_sections(review, source):
        lines += _list(section)
    lines += _package_table(review)
    for section in other_sections(review, source):
        lines += _list(section)
    if review.other_cards:
        lines.append("<details><summary>GPUs that the spec does not declare</summary>\n")
        lines += [f"- {escape_markdown(meaning.text)}" for meaning in review.other_cards]
        lines.append("\n</details>\n")
    return "\n".join(lines)


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
            yield f"\nand {len(changes) - number} more, which do not fit in a comment"
            break
        yield row
    yield ""


def _list(section: Section) -> list[str]:
    title, rows = section
    if not rows:
        return []
    lines = [f"**{title[0].upper()}{title[1:]}**\n"]
    for mark, text in rows:
        label = f"**{mark.value}**" if isinstance(mark, Severity) else escape_markdown(mark)
        lines.append(f"- {label} {escape_markdown(text)}")
    return [*lines, ""]
