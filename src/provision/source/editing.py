"""Fixes applied to the author's text: only the characters they name change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from provision.diagnostics import At, Edit, Fix, Insert, Route, Span
from provision.source.composing import compose
from provision.source.nodes import Item, Mapping, Scalar, Sequence
from provision.source.placing import Placed
from provision.source.quoting import written
from provision.source.text import Text, text_of

_LEAD = re.compile(r"[ -]*")


class Change(NamedTuple):
    """Characters `start` to `end` of a text (end exclusive) and what takes their place."""

    start: int
    end: int
    text: str


class Subject(NamedTuple):
    """What is edited: a spec's own file, and the values of one of its documents."""

    text: Text
    tree: Placed | None


def edited(fixes: Iterable[tuple[Subject, Fix]]) -> dict[str, str]:
    """Return the new text, byte order mark included, of each file that the fixes change.

    A fix is applied whole or not at all. It is left out when it overlaps an earlier one, when it would touch a file that is extended or a value that others
    share through an anchor, alias or merge key, or when the text would not be read as well as before. Callers lint again and come back with what remains.
    """
    files: dict[str, tuple[Text, list[tuple[Change, ...]]]] = {}
    for subject, fix in fixes:
        wanted = changes(subject, fix)
        if wanted:
            files.setdefault(subject.text.name, (subject.text, []))[1].append(wanted)
    new = {name: (text, _applied(text, asked)) for name, (text, asked) in files.items()}
    return {name: ("\ufeff" if text.bom else "") + content for name, (text, content) in new.items() if content != text.content}


def changes(subject: Subject, fix: Fix) -> tuple[Change, ...] | None:
    """Return what a fix changes in the text; None when a part of it cannot be made there."""
    wanted = [_change(subject, edit) for edit in fix.edits]
    return None if None in wanted else tuple(change for change in wanted if change is not None)


def own(subject: Subject, route: Route) -> Placed | None:
    """Return the value at `route` if it stands in the file itself and no other value shares its text."""
    found = None if subject.tree is None else subject.tree.find(route)
    return found if found is not None and not found.shared and found.at.text is subject.text else None


def _applied(text: Text, wanted: list[tuple[Change, ...]]) -> str:
    """Return the text with as many of the fixes as can stand together: all of them when that reads well, else one after the other."""
    chosen: list[Change] = []
    for changes in wanted:
        if not _overlap(chosen, changes):
            chosen += changes
    whole = _written(text, chosen)
    if _reads_as_well(text, whole):
        return whole
    chosen = []
    for changes in wanted:
        if not _overlap(chosen, changes) and _reads_as_well(text, _written(text, [*chosen, *changes])):
            chosen += changes
    return _written(text, chosen)


def _written(text: Text, changes: list[Change]) -> str:
    content = text.content
    # From the end, so that offsets before a change stay true; of two insertions at one place the earlier stands first.
    for _, change in sorted(enumerate(changes), key=lambda item: (item[1].start, item[1].end, item[0]), reverse=True):
        content = content[: change.start] + change.text + content[change.end :]
    return content


def _reads_as_well(text: Text, content: str) -> bool:
    def problems(of: Text) -> Counter[str]:
        return Counter(problem.id for document in compose(of) for problem in document.diagnostics)

    return not problems(text_of(text.name, content)) - problems(text)


def _overlap(chosen: list[Change], changes: tuple[Change, ...]) -> bool:
    return any(_touch(one, other) for one in chosen for other in changes) or any(
        _touch(one, other) for index, one in enumerate(changes) for other in changes[:index]
    )


def _touch(one: Change, other: Change) -> bool:
    if one.start == one.end == other.start == other.end:
        # Two lines, or two members after a comma, can stand one after the other.
        return not (one.text[:1] in ",\r\n" and other.text[:1] in ",\r\n")
    return (one.start < other.end and other.start < one.end) or one[:2] == other[:2]


def _change(subject: Subject, edit: Edit) -> Change | None:
    if any(character in edit.text for character in "\r\n"):
        return None
    if isinstance(edit, Insert):
        return _insertion(subject, edit)
    if isinstance(edit.where, Span):
        return Change(edit.where.start.offset, edit.where.end.offset, edit.text) if edit.where.file == subject.text.name else None
    found = own(subject, edit.where.route)
    if found is None:
        return None
    at = found.key if edit.where.at is At.KEY else found.at if isinstance(found.node, Scalar) else None
    if at is None:
        return None
    # An empty value stands right behind its colon or dash.
    blank = " " if at.start == at.end and subject.text.content[at.start - 1 : at.start] in (":", "-") else ""
    return Change(at.start, at.end, blank + edit.text)


def _insertion(subject: Subject, edit: Insert) -> Change | None:
    found = own(subject, edit.route)
    if found is None or isinstance(found.node, Scalar) or isinstance(found.node, Mapping) == (edit.key is None):
        return None
    node = found.node
    if isinstance(node, Mapping) and any(entry.key.value == edit.key for entry in node.entries):
        return None
    member = edit.text if edit.key is None else f"{written(edit.key)}: {edit.text}"
    return _into_flow(node, member) if node.flow else _into_block(node, subject.text, member)


def _into_flow(node: Mapping | Sequence, member: str) -> Change:
    last = _last(node)
    if last is None:
        return Change(node.start + 1, node.start + 1, member)
    return Change(last.end, last.end, f", {member}")


def _into_block(node: Mapping | Sequence, text: Text, member: str) -> Change | None:
    """Put the new line after the last one of the collection, in the column of its first key or dash."""
    lead = text.content[text.start_of_line(node.start) : node.start]
    # With `? key` or a tab in front, the column is not ours to copy.
    if not _LEAD.fullmatch(lead) or _keeps_blank_lines(node):
        return None
    dash = "- " if isinstance(node, Sequence) else ""
    end = text.end_of_line(node.end)
    return Change(end, end, f"{text.line_break()}{' ' * len(lead)}{dash}{member}")


def _keeps_blank_lines(item: Item | None) -> bool:
    """Tell whether what is written last is a `|+` scalar, to which the blank lines that follow belong."""
    while isinstance(item, Mapping | Sequence):
        item = _last(item)
    return isinstance(item, Scalar) and item.style in ("|", ">") and "+" in item.text.content[item.start : item.text.end_of_line(item.start)]


def _last(node: Mapping | Sequence) -> Item | None:
    items = [entry.value for entry in node.entries] if isinstance(node, Mapping) else node.items
    return items[-1] if items else None
