"""What differs between two locks as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from provision.diagnostics import Severity
from provision.lock.diff import LockReview
from provision.views.diagnostics.source_location import SourceText
from provision.views.diagnostics.text import sort_findings
from provision.views.diff.lock_text import (
    change_symbol,
    describe_file_changes,
    describe_finding,
    describe_finding_with_help,
    describe_no_changes,
    describe_package_change,
    describe_target_change,
    describe_value_change,
    summarize_packages,
)
from provision.views.markdown import escape_markdown

MAX_TABLE_CHARACTERS = 60_000
"""Code points of the table: a comment on GitHub may hold 65,536 (its API refuses a longer one:
"Body is too long").
"""


def render_comment(review: LockReview, source: SourceText) -> str:
    """Return the changes as Markdown: what matters most first, the packages in a table, and in a
    fold what concerns other cards.
    """
    return "\n".join(_lines(review, source))


def _lines(review: LockReview, source: SourceText) -> Iterator[str]:
    found = review.comparison
    yield f"### Lock: {escape_markdown(review.old)} → {escape_markdown(review.new)}\n"
    yield (
        describe_no_changes(review) + "\n"
        if found.is_empty
        else escape_markdown(summarize_packages(review)) + "\n"
    )
    yield from _list(
        "By the facts",
        (
            (one.meaning.severity, _followed(one.meaning.text, one.targets))
            for one in review.consequences
        ),
    )
    yield from _list(
        "Found by the rules since",
        (
            (one.severity, describe_finding_with_help(one, source))
            for one in sort_findings(review.new_findings, source)
        ),
    )
    yield from _list(
        "The same version with other files",
        (
            (Severity.WARNING if one.suspicious else None, describe_file_changes(one))
            for one in found.files
        ),
    )
    yield from _table(review)
    yield from _list(
        "Python", [(None, f"{found.python.old} -> {found.python.new}")] if found.python else []
    )
    yield from _list(
        "Targets",
        (
            (None, f"{change_symbol(one.old, one.new)} {describe_target_change(one)}")
            for one in found.targets
        ),
    )
    yield from _list(
        "Indexes",
        (
            (None, f"{change_symbol(one.old, one.new)} {describe_value_change(one)}")
            for one in found.indexes
        ),
    )
    yield from _list(
        "The spec asks otherwise",
        (
            (None, f"{change_symbol(one.old, one.new)} {describe_value_change(one)}")
            for one in found.inputs
        ),
    )
    yield from _list(
        "Settled",
        (
            (None, describe_finding(one, source))
            for one in sort_findings(review.resolved_findings, source)
        ),
    )
    if review.other_cards:
        yield "<details><summary>Cards that the spec does not name</summary>\n"
        yield from (f"- {escape_markdown(meaning.text)}" for meaning in review.other_cards)
        yield "\n</details>\n"


def _table(review: LockReview) -> Iterator[str]:
    if not review.comparison.packages:
        return
    yield "| | package | before | after | |\n|---|---|---|---|---|"
    room = MAX_TABLE_CHARACTERS
    for number, change in enumerate(review.comparison.packages):
        was, now, besides = describe_package_change(change)
        row = (
            f"| {escape_markdown(change_symbol(change.old, change.new))} | "
            f"{escape_markdown(change.name)} | {escape_markdown(was)} | {escape_markdown(now)} "
            f"| {escape_markdown(besides)} |"
        )
        room -= len(row) + 1
        if room < 0:
            (
                yield f"\nand {len(review.comparison.packages) - number} more, which do not fit "
                "into "
                "a comment"
            )
            break
        yield row
    yield ""


def _list(title: str, rows: Iterable[tuple[Severity | None, str]]) -> Iterator[str]:
    listed = [
        f"- **{severity.value}** {escape_markdown(words)}"
        if severity
        else f"- {escape_markdown(words)}"
        for severity, words in rows
    ]
    yield from [f"**{title}**\n", *listed, ""] if listed else []


def _followed(text: str, targets: tuple[str, ...]) -> str:
    return text + (f" (target {', '.join(targets)})" if targets else "")
