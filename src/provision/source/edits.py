"""Applies fixes to the text of a spec: only the characters that they name change."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from provision.diagnostics import Edit, Fix, Insert, Route, RoutePart, Span
from provision.source.nodes import (
    Item,
    LocatedValue,
    Mapping,
    Scalar,
    Sequence,
    TextFile,
    to_text_file,
)
from provision.source.yaml_parser import compose
from provision.source.yaml_scalars import format_scalar

_LEAD = re.compile(r"[ -]*")


class TextChange(NamedTuple):
    """A replacement of the characters `start` to `end` (exclusive) of a text."""

    start: int
    end: int
    text: str


class EditableDocument(NamedTuple):
    """A spec's own file, and the values of one of its documents."""

    text: TextFile
    tree: LocatedValue | None


def apply_fixes(
    fixes: Iterable[tuple[EditableDocument, Fix]], *, trusted: bool = False
) -> dict[str, str]:
    """Return the new text, byte order mark included, of each file that the fixes change.

    A fix is applied completely or not at all. It is skipped if it overlaps an earlier one, if it
    would change an extended file or a value that others share through an anchor, alias or merge
    key, or if the text would get a new syntax problem. Callers lint again and return with what
    remains. With `trusted`, the text is known to get no new problem (see
    `select_applicable_fixes`).
    """
    files: dict[str, tuple[TextFile, list[tuple[TextChange, ...]]]] = {}
    for subject, fix in fixes:
        changes = to_text_changes(subject, fix)
        if changes:
            files.setdefault(subject.text.name, (subject.text, []))[1].append(changes)
    contents: dict[str, str] = {}
    for name, (text, changes_of_fixes) in files.items():
        content = _apply_compatible(text, changes_of_fixes, trusted=trusted)
        if content != text.content:
            contents[name] = ("\ufeff" if text.bom else "") + content
    return contents


def to_text_changes(subject: EditableDocument, fix: Fix) -> tuple[TextChange, ...] | None:
    """Return the changes of a fix; None if one of its edits cannot be applied."""
    changes = []
    for edit in fix.edits:
        change = _to_change(subject, edit)
        if change is None:
            return None
        changes.append(change)
    return tuple(changes)


def find_own_value(subject: EditableDocument, route: Route) -> LocatedValue | None:
    """Return the value at a route if it is in the file itself and does not share its text."""
    value = subject.tree.find(route) if subject.tree else None
    if value is None or value.shared or value.at.text is not subject.text:
        return None
    return value


def select_applicable_fixes(subject: EditableDocument, fixes: Iterable[Fix]) -> set[Fix]:
    """Return the fixes that can each be applied without a new syntax problem.

    They are tested in batches: parsing the text once for each fix would take time proportional to
    their number times the length of the text.
    """
    remaining = []
    for fix in dict.fromkeys(fixes):
        changes = to_text_changes(subject, fix)
        if changes and not _NonOverlappingChanges().clashes(changes):
            remaining.append((fix, changes))
    applicable: set[Fix] = set()
    while remaining:
        chosen, batch, later = _NonOverlappingChanges(), [], []
        for fix, changes in remaining:
            if chosen.clashes(changes):
                later.append((fix, changes))
            else:
                chosen.add(changes)
                batch.append((fix, changes))
        applicable |= _applicable_in_batch(subject.text, batch)
        remaining = later
    return applicable


def _applicable_in_batch(
    text: TextFile, batch: list[tuple[Fix, tuple[TextChange, ...]]]
) -> set[Fix]:
    """Return the applicable fixes of a batch: all of them, or those of its halves."""
    content = _apply_changes(text, [change for _, changes in batch for change in changes])
    if _has_no_new_problem(text, content):
        return {fix for fix, _ in batch}
    if len(batch) == 1:
        return set()
    middle = len(batch) // 2
    return _applicable_in_batch(text, batch[:middle]) | _applicable_in_batch(text, batch[middle:])


def _apply_compatible(
    text: TextFile, changes_of_fixes: list[tuple[TextChange, ...]], *, trusted: bool
) -> str:
    """Return the text with all fixes, or with those that can be applied one after the other."""
    chosen = _NonOverlappingChanges()
    for changes in changes_of_fixes:
        if not chosen.clashes(changes):
            chosen.add(changes)
    content = _apply_changes(text, chosen.changes)
    if trusted or _has_no_new_problem(text, content):
        return content
    chosen = _NonOverlappingChanges()
    for changes in changes_of_fixes:
        if chosen.clashes(changes):
            continue
        content = _apply_changes(text, [*chosen.changes, *changes])
        if _has_no_new_problem(text, content):
            chosen.add(changes)
    return _apply_changes(text, chosen.changes)


def _apply_changes(text: TextFile, changes: list[TextChange]) -> str:
    parts, end = list[str](), 0
    # The sort is stable: of two insertions at an offset, the earlier one comes first.
    for change in sorted(changes, key=lambda change: (change.start, change.end)):
        parts += text.content[end : change.start], change.text
        end = change.end
    return "".join([*parts, text.content[end:]])


class _NonOverlappingChanges:
    """Changes that do not touch each other, in the order in which they were added."""

    def __init__(self) -> None:
        self.changes: list[TextChange] = []
        self._sorted: list[tuple[int, int, TextChange]] = []

    def clashes(self, changes: tuple[TextChange, ...]) -> bool:
        """Return whether any of the changes touches an added change or another one of them."""
        return any(
            _overlap(change, other)
            for index, change in enumerate(changes)
            for other in (*changes[:index], *self._neighbours(change))
        )

    def add(self, changes: tuple[TextChange, ...]) -> None:
        """Add changes that do not clash."""
        self.changes += changes
        for change in changes:
            insort(self._sorted, (change.start, change.end, change))

    def _neighbours(self, change: TextChange) -> Iterator[TextChange]:
        """Yield the added changes that start before the end of a change and may touch it."""
        index = bisect_left(self._sorted, (change.start,))
        if index:
            yield self._sorted[index - 1][2]
        for start, _, other in islice(self._sorted, index, None):
            if start > change.end:
                return
            yield other


def _has_no_new_problem(text: TextFile, content: str) -> bool:
    return not _count_problems(to_text_file(text.name, content)) - _count_problems(text)


def _count_problems(text: TextFile) -> Counter[str]:
    return Counter(problem.id for document in compose(text) for problem in document.diagnostics)


def _overlap(left: TextChange, right: TextChange) -> bool:
    if left.start == left.end == right.start == right.end:
        # Two lines, or two members with a leading comma, can follow each other.
        return not (left.text[:1] in ",\r\n" and right.text[:1] in ",\r\n")
    return (left.start < right.end and right.start < left.end) or left[:2] == right[:2]


def _to_change(subject: EditableDocument, edit: Edit) -> TextChange | None:
    if any(character in edit.text for character in "\r\n"):
        return None
    if isinstance(edit, Insert):
        return _to_insertion(subject, edit)
    if isinstance(edit.where, Span):
        if edit.where.file != subject.text.name:
            return None
        return TextChange(edit.where.start.offset, edit.where.end.offset, edit.text)
    value = find_own_value(subject, edit.where.route)
    if value is None:
        return None
    target = value.key
    if edit.where.part is not RoutePart.KEY:
        target = value.at if isinstance(value.node, Scalar) else None
    if target is None:
        return None
    _, start, end = target
    # An empty value starts right after its colon or dash.
    is_empty = start == end and subject.text.content[start - 1 : start] in (":", "-")
    return TextChange(start, end, f" {edit.text}" if is_empty else edit.text)


def _to_insertion(subject: EditableDocument, edit: Insert) -> TextChange | None:
    value = find_own_value(subject, edit.route)
    if value is None or isinstance(value.node, Scalar):
        return None
    node = value.node
    if isinstance(node, Mapping) == (edit.key is None):
        return None
    if isinstance(node, Mapping) and any(entry.key.value == edit.key for entry in node.entries):
        return None
    member = edit.text if edit.key is None else f"{format_scalar(edit.key)}: {edit.text}"
    return _into_flow(node, member) if node.flow else _into_block(node, subject.text, member)


def _into_flow(node: Mapping | Sequence, member: str) -> TextChange:
    last = _last_item(node)
    if last is None:
        return TextChange(node.start + 1, node.start + 1, member)
    return TextChange(last.end, last.end, f", {member}")


def _into_block(node: Mapping | Sequence, text: TextFile, member: str) -> TextChange | None:
    """Add a line after the last one of a collection, in the column of its first key or dash."""
    lead = text.content[text.start_of_line(node.start) : node.start]
    # With `? key` or a tab in front, the column is not ours to copy.
    if not _LEAD.fullmatch(lead) or _keeps_blank_lines(node):
        return None
    dash = "- " if isinstance(node, Sequence) else ""
    end = text.end_of_line(node.end)
    return TextChange(end, end, f"{text.line_break()}{' ' * len(lead)}{dash}{member}")


def _keeps_blank_lines(item: Item | None) -> bool:
    """Return whether an item ends with a `|+` scalar, which includes the blank lines after it."""
    while isinstance(item, Mapping | Sequence):
        item = _last_item(item)
    return (
        isinstance(item, Scalar)
        and item.style in ("|", ">")
        and "+" in item.text.content[item.start : item.text.end_of_line(item.start)]
    )


def _last_item(node: Mapping | Sequence) -> Item | None:
    items = [entry.value for entry in node.entries] if isinstance(node, Mapping) else node.items
    return items[-1] if items else None
