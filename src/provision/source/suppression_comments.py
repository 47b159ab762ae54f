"""Comments of a spec file that accept findings: `# provision: ignore[PKG001] reason`."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from provision.source.nodes import (
    Alias,
    Item,
    Mapping,
    Scalar,
    Sequence,
    TextFile,
    TextRange,
)
from provision.source.yaml_parser import compose

_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#[^\r\n]*", re.MULTILINE)
_SUPPRESSION = re.compile(r"#+[ \t]*provision[ \t]*:[ \t]*ignore\b(?P<rest>.*)", re.IGNORECASE)
_IDS = re.compile(r"[ \t]*\[(?P<ids>[^\[\]]*)\](?P<reason>.*)")


class SuppressionComment(NamedTuple):
    """A comment that accepts findings.

    Attributes:
        comment: the range of the comment.
        document: the 0-based number of its document.
        covered: the range in which a finding has to start; empty if no node follows the comment.
        ids: the rules in brackets, as written; () without brackets or with empty ones.
        reason: the text after the brackets.
    """

    comment: TextRange
    document: int
    covered: TextRange
    ids: tuple[str, ...]
    reason: str


def find_suppression_comments(text: TextFile) -> tuple[SuppressionComment, ...]:
    """Return the comments of a file that accept findings; () if its YAML cannot be parsed.

    A comment on its own line covers the next node: an item of a list, or a key with its value. A
    comment after a value covers the line and the nodes that start on it.
    """
    if "provision" not in text.content or "ignore" not in text.content:
        return ()  # most specs are not parsed again
    documents = compose(text)
    roots = [document.root for document in documents if document.root is not None]
    if len(roots) < len(documents):
        return ()
    scalars: list[tuple[int, int]] = []
    nodes: list[tuple[int, int]] = []
    ends: list[int] = []
    for root in roots:
        _collect(root, scalars, nodes)
        ends.append(text.end_of_line(root.end))
    scalars.sort()
    nodes.sort(key=lambda node: (node[0], -node[1]))
    found = []
    for match in _COMMENT.finditer(text.content):
        words = _SUPPRESSION.match(match.group())
        if words is None or _is_inside(match.start(), scalars):
            continue
        listed = _IDS.match(words["rest"])
        ids = (part.strip() for part in listed["ids"].split(",")) if listed else ()
        found.append(
            SuppressionComment(
                TextRange(text, *match.span()),
                min(bisect_right(ends, match.start() - 1), len(ends) - 1),
                _find_covered_range(text, match.start(), nodes),
                tuple(filter(None, ids)),
                listed["reason"].strip(" \t:-") if listed else "",
            )
        )
    return tuple(found)


def _collect(item: Item, scalars: list[tuple[int, int]], nodes: list[tuple[int, int]]) -> None:
    """Add the ranges of the scalars below an item, and of its list items and entries."""
    if isinstance(item, Scalar):
        start = item.start
        if item.style in ("|", ">"):  # a comment may follow the sign that opens the text
            start = item.text.end_of_line(start)
        scalars.append((start, item.end))
    elif isinstance(item, Sequence):
        for child in item.items:
            nodes.append((child.start, child.end))
            _collect(child, scalars, nodes)
    elif isinstance(item, Mapping):
        for entry in item.entries:
            nodes.append((entry.key.start, max(entry.key.end, entry.value.end)))
            _collect(entry.key, scalars, nodes)
            if not isinstance(entry.value, Alias):
                _collect(entry.value, scalars, nodes)


def _is_inside(offset: int, scalars: list[tuple[int, int]]) -> bool:
    index = bisect_right(scalars, (offset, len(scalars) + offset)) - 1
    return index >= 0 and scalars[index][0] <= offset < scalars[index][1]


def _find_covered_range(text: TextFile, comment: int, nodes: list[tuple[int, int]]) -> TextRange:
    line = text.start_of_line(comment)
    if text.content[line:comment].strip(" \t"):
        ends = (end for start, end in nodes if line <= start < comment)
        return TextRange(text, line, max(ends, default=comment))
    following = next((node for node in nodes if node[0] > comment), None)
    return TextRange(text, *(following or (comment, comment)))
