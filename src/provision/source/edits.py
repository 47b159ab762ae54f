"""Fixes applied to the author's text: only the characters they name change."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from provision.diagnostics import Edit, Fix, Insert, Route, RoutePart, Span
from provision.source.nodes import Item, Mapping, Scalar, Sequence
from provision.source.text import TextFile, to_text_file
from provision.source.value_tree import LocatedValue
from provision.source.yaml_parser import compose
from provision.source.yaml_scalars import format_scalar

_LEAD = re.compile(r"[ -]*")


class TextChange(NamedTuple):
    """Characters `start` to `end` of a text (end exclusive) and what takes their place."""

    start: int
    end: int
    text: str


class EditableDocument(NamedTuple):
    """What is edited: a spec's own file, and the values of one of its documents."""

    text: TextFile
    tree: LocatedValue | None


def apply_fixes(
    fixes: Iterable[tuple[EditableDocument, Fix]], *, trusted: bool = False
) -> dict[str, str]:
    """Return the new text, byte order mark included, of each file that the fixes change.

    A fix is applied whole or not at all. It is left out when it overlaps an earlier one, when it
    would touch a file that is extended or a value that others
    share through an anchor, alias or merge key, or when the text would not be read as well as
    before. Callers lint again and come back with what remains.
    With `trusted` it is known that the text will be read as well (see `vetted`).
    """
    files: dict[str, tuple[TextFile, list[tuple[TextChange, ...]]]] = {}
    for subject, fix in fixes:
        wanted = to_text_changes(subject, fix)
        if wanted:
            files.setdefault(subject.text.name, (subject.text, []))[1].append(wanted)
    new = {
        name: (text, _applied(text, asked, trusted=trusted))
        for name, (text, asked) in files.items()
    }
    return {
        name: ("\ufeff" if text.bom else "") + content
        for name, (text, content) in new.items()
        if content != text.content
    }


def to_text_changes(subject: EditableDocument, fix: Fix) -> tuple[TextChange, ...] | None:
    """Return what a fix changes in the text; None when a part of it cannot be made there."""
    wanted = [_change(subject, edit) for edit in fix.edits]
    return None if None in wanted else tuple(change for change in wanted if change is not None)


def find_own_value(subject: EditableDocument, route: Route) -> LocatedValue | None:
    """Return the value at `route` if it stands in the file itself and no other value shares its
    text.
    """
    found = None if subject.tree is None else subject.tree.find(route)
    return (
        found if found is not None and not found.shared and found.at.text is subject.text else None
    )


def select_applicable_fixes(subject: EditableDocument, fixes: Iterable[Fix]) -> set[Fix]:
    """Return the fixes that can each be made and leave the text read as well as before.

    They are tried many at a time, as reading the text once for each would take as long as their
    number times the text's length.
    """
    waiting = [
        (fix, wanted)
        for fix in dict.fromkeys(fixes)
        if (wanted := to_text_changes(subject, fix))
        and not _NonOverlappingChanges().clashes(wanted)
    ]
    good: set[Fix] = set()
    while waiting:
        chosen, batch, later = _NonOverlappingChanges(), [], []
        for fix, wanted in waiting:
            if chosen.clashes(wanted):
                later.append((fix, wanted))
            else:
                chosen.add(wanted)
                batch.append((fix, wanted))
        good |= _applicable_in_batch(subject.text, batch)
        waiting = later
    return good


def _applicable_in_batch(
    text: TextFile, batch: list[tuple[Fix, tuple[TextChange, ...]]]
) -> set[Fix]:
    """Return the fixes of a batch after which the text is read as well as before: all, or those of
    its halves.
    """
    if _reads_as_well(
        text, _apply_changes(text, [change for _, wanted in batch for change in wanted])
    ):
        return {fix for fix, _ in batch}
    middle = len(batch) // 2
    return (
        _applicable_in_batch(text, batch[:middle]) | _applicable_in_batch(text, batch[middle:])
        if middle
        else set()
    )


def _applied(text: TextFile, wanted: list[tuple[TextChange, ...]], *, trusted: bool) -> str:
    """Return the text with as many of the fixes as can stand together: all of them when that reads
    well, else one after the other.
    """
    chosen = _NonOverlappingChanges()
    for changes in wanted:
        if not chosen.clashes(changes):
            chosen.add(changes)
    whole = _apply_changes(text, chosen.changes)
    if trusted or _reads_as_well(text, whole):
        return whole
    chosen = _NonOverlappingChanges()
    for changes in wanted:
        if not chosen.clashes(changes) and _reads_as_well(
            text, _apply_changes(text, [*chosen.changes, *changes])
        ):
            chosen.add(changes)
    return _apply_changes(text, chosen.changes)


def _apply_changes(text: TextFile, changes: list[TextChange]) -> str:
    parts, reached = list[str](), 0
    # Of two insertions at one place the earlier stands first.
    for change in sorted(changes, key=lambda change: (change.start, change.end)):
        parts += text.content[reached : change.start], change.text
        reached = change.end
    return "".join([*parts, text.content[reached:]])


class _NonOverlappingChanges:
    """Changes that do not touch each other, in the order in which they were added."""

    def __init__(self) -> None:
        self.changes: list[TextChange] = []
        self._sorted: list[tuple[int, int, TextChange]] = []

    def clashes(self, changes: tuple[TextChange, ...]) -> bool:
        """Tell whether any of the changes touches one that was chosen, or another of them."""
        return any(
            _overlap(one, other) for index, one in enumerate(changes) for other in changes[:index]
        ) or any(
            _overlap(change, other) for change in changes for other in self._neighbours(change)
        )

    def add(self, changes: tuple[TextChange, ...]) -> None:
        """Add changes that clash with none."""
        self.changes += changes
        for change in changes:
            insort(self._sorted, (change.start, change.end, change))

    def _neighbours(self, change: TextChange) -> Iterator[TextChange]:
        """Yield the chosen changes that begin at or before the end of this one and are not wholly
        before it.
        """
        place = bisect_left(self._sorted, (change.start,))
        if place:
            yield self._sorted[place - 1][2]
        for start, _, other in islice(self._sorted, place, None):
            if start > change.end:
                return
            yield other


def _reads_as_well(text: TextFile, content: str) -> bool:
    def problems(of: TextFile) -> Counter[str]:
        return Counter(problem.id for document in compose(of) for problem in document.diagnostics)

    return not problems(to_text_file(text.name, content)) - problems(text)


def _overlap(one: TextChange, other: TextChange) -> bool:
    if one.start == one.end == other.start == other.end:
        # Two lines, or two members after a comma, can stand one after the other.
        return not (one.text[:1] in ",\r\n" and other.text[:1] in ",\r\n")
    return (one.start < other.end and other.start < one.end) or one[:2] == other[:2]


def _change(subject: EditableDocument, edit: Edit) -> TextChange | None:
    if any(character in edit.text for character in "\r\n"):
        return None
    if isinstance(edit, Insert):
        return _insertion(subject, edit)
    if isinstance(edit.where, Span):
        return (
            TextChange(edit.where.start.offset, edit.where.end.offset, edit.text)
            if edit.where.file == subject.text.name
            else None
        )
    found = find_own_value(subject, edit.where.route)
    if found is None:
        return None
    at = (
        found.key
        if edit.where.part is RoutePart.KEY
        else found.at
        if isinstance(found.node, Scalar)
        else None
    )
    if at is None:
        return None
    # An empty value stands right behind its colon or dash.
    blank = (
        " "
        if at.start == at.end and subject.text.content[at.start - 1 : at.start] in (":", "-")
        else ""
    )
    return TextChange(at.start, at.end, blank + edit.text)


def _insertion(subject: EditableDocument, edit: Insert) -> TextChange | None:
    found = find_own_value(subject, edit.route)
    if (
        found is None
        or isinstance(found.node, Scalar)
        or isinstance(found.node, Mapping) == (edit.key is None)
    ):
        return None
    node = found.node
    if isinstance(node, Mapping) and any(entry.key.value == edit.key for entry in node.entries):
        return None
    member = edit.text if edit.key is None else f"{format_scalar(edit.key)}: {edit.text}"
    return _into_flow(node, member) if node.flow else _into_block(node, subject.text, member)


def _into_flow(node: Mapping | Sequence, member: str) -> TextChange:
    last = _last(node)
    if last is None:
        return TextChange(node.start + 1, node.start + 1, member)
    return TextChange(last.end, last.end, f", {member}")


def _into_block(node: Mapping | Sequence, text: TextFile, member: str) -> TextChange | None:
    """Put the new line after the last one of the collection, in the column of its first key or
    dash.
    """
    lead = text.content[text.start_of_line(node.start) : node.start]
    # With `? key` or a tab in front, the column is not ours to copy.
    if not _LEAD.fullmatch(lead) or _keeps_blank_lines(node):
        return None
    dash = "- " if isinstance(node, Sequence) else ""
    end = text.end_of_line(node.end)
    return TextChange(end, end, f"{text.line_break()}{' ' * len(lead)}{dash}{member}")


def _keeps_blank_lines(item: Item | None) -> bool:
    """Tell whether what is written last is a `|+` scalar, to which the blank lines that follow
    belong.
    """
    while isinstance(item, Mapping | Sequence):
        item = _last(item)
    return (
        isinstance(item, Scalar)
        and item.style in ("|", ">")
        and "+" in item.text.content[item.start : item.text.end_of_line(item.start)]
    )


def _last(node: Mapping | Sequence) -> Item | None:
    items = [entry.value for entry in node.entries] if isinstance(node, Mapping) else node.items
    return items[-1] if items else None
