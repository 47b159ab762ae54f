"""What differs between two locks as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from provision.diagnostics import Severity
from provision.lock.comparing import Review
from provision.views.located import SourceText
from provision.views.lock_changes import files, finding, package, pair, place, settled, sign, summary, unmoved
from provision.views.markdown import literal
from provision.views.text import ordered

LARGEST = 60_000
"""Code points of the table: a comment on GitHub may hold 65,536 (its API refuses a longer one: "Body is too long")."""


def comment(review: Review, source: SourceText) -> str:
    """Return the changes as Markdown: what matters most first, the packages in a table, and in a fold what concerns other cards."""
    return "\n".join(_lines(review, source))


def _lines(review: Review, source: SourceText) -> Iterator[str]:
    found = review.comparison
    yield f"### Lock: {literal(review.old)} → {literal(review.new)}\n"
    yield unmoved(review) + "\n" if found.empty else literal(summary(review)) + "\n"
    yield from _list("By the facts", ((one.meaning.severity, _followed(one.meaning.text, one.targets)) for one in review.follows))
    yield from _list("Found by the rules since", ((one.severity, finding(one, source)) for one in ordered(review.appeared, source)))
    yield from _list("The same version with other files", ((Severity.WARNING if one.suspicious else None, files(one)) for one in found.files))
    yield from _table(review)
    yield from _list("Python", [(None, f"{found.python.old} -> {found.python.new}")] if found.python else [])
    yield from _list("Targets", ((None, f"{sign(one.old, one.new)} {place(one)}") for one in found.places))
    yield from _list("Indexes", ((None, f"{sign(one.old, one.new)} {pair(one)}") for one in found.indexes))
    yield from _list("The spec asks otherwise", ((None, f"{sign(one.old, one.new)} {pair(one)}") for one in found.asked))
    yield from _list("Settled", ((None, settled(one, source)) for one in ordered(review.settled, source)))
    if review.elsewhere:
        yield "<details><summary>Cards that the spec does not name</summary>\n"
        yield from (f"- {literal(meaning.text)}" for meaning in review.elsewhere)
        yield "\n</details>\n"


def _table(review: Review) -> Iterator[str]:
    if not review.comparison.packages:
        return
    yield "| | package | before | after | |\n|---|---|---|---|---|"
    room = LARGEST
    for number, change in enumerate(review.comparison.packages):
        was, now, besides = package(change)
        row = f"| {literal(sign(change.old, change.new))} | {literal(change.name)} | {literal(was)} | {literal(now)} | {literal(besides)} |"
        room -= len(row) + 1
        if room < 0:
            yield f"\nand {len(review.comparison.packages) - number} more, which do not fit into a comment"
            break
        yield row
    yield ""


def _list(title: str, rows: Iterable[tuple[Severity | None, str]]) -> Iterator[str]:
    listed = [f"- **{severity.value}** {literal(words)}" if severity else f"- {literal(words)}" for severity, words in rows]
    yield from [f"**{title}**\n", *listed, ""] if listed else []


def _followed(text: str, targets: tuple[str, ...]) -> str:
    return text + (f" (target {', '.join(targets)})" if targets else "")
