"""Nodes of a YAML document with their positions, and the tree of its values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from provision.diagnostics import Route
from provision.source.text import TextFile, TextRange

ScalarValue = str | int | float | bool | None
"""The value of a plain scalar."""

CORE_TAGS = {
    f"tag:yaml.org,2002:{name}": name
    for name in ("str", "int", "float", "bool", "null", "seq", "map")
}
MERGE_KEY = "<<"

MAX_NUMBER_DIGITS = 20
"""Digits: more than any 64-bit integer has (2**64 has 20)."""

# The core schema of YAML 1.2.2, section 10.3.2, except that a number with a leading zero is text:
# 0644 and 00:30 are not decimal numbers.
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


RelatedRange = tuple[TextRange, str]
"""A range that is related to a value, and its relation."""


class Scalar(NamedTuple):
    """A single value: `value` is its text with quotes and escapes resolved, `resolved` its meaning.

    `style` is the character that opens it (a quote, | or >), empty for a plain scalar. `start` and
    `end` exclude anchor and tag.
    """

    text: TextFile
    start: int
    end: int
    value: str
    style: str
    resolved: ScalarValue
    anchored: bool
    weight: int = 1
    height: int = 0


class Sequence(NamedTuple):
    """A list; `flow` distinguishes [a, b] from the block form."""

    text: TextFile
    start: int
    end: int
    items: tuple[Item, ...]
    flow: bool
    anchored: bool
    weight: int
    height: int


class Mapping(NamedTuple):
    """Keys and values in the written order, including duplicates and merge keys."""

    text: TextFile
    start: int
    end: int
    entries: tuple[Entry, ...]
    flow: bool
    anchored: bool
    weight: int
    height: int


class Alias(NamedTuple):
    """A use (*name) of an anchored node, with its weight and height."""

    text: TextFile
    start: int
    end: int
    name: str
    anchored_node: Node
    weight: int
    height: int


Node = Scalar | Sequence | Mapping
Item = Node | Alias


class Entry(NamedTuple):
    """A key and its value."""

    key: Scalar
    value: Item

    @property
    def is_merge(self) -> bool:
        """True if the key is the merge key."""
        return self.key.value == MERGE_KEY and self.key.style == ""


def resolve_alias(item: Item) -> Node:
    """Return a node itself, or the node that an alias refers to."""
    return item.anchored_node if isinstance(item, Alias) else item


def to_text_range(item: Item) -> TextRange:
    """Return the range of an item in its text."""
    return TextRange(item.text, item.start, item.end)


def resolve_scalar(text: str) -> tuple[ScalarValue, str]:
    """Return the value of a plain scalar in the core schema of YAML 1.2, and a problem or "".

    Numbers beyond the limits stay text.
    """
    if text in _NULL:
        return None, ""
    if text in _BOOL:
        return _BOOL[text], ""
    # No accepted number is longer than this head, so longer text needs no regular expression.
    head = text[: 2 * MAX_NUMBER_DIGITS + 16]
    if head[0] not in "+-.0123456789":
        return text, ""
    if _NOT_FINITE.fullmatch(head):
        return text, "the number is not finite"
    if len(text) > len(head):
        return text, _too_long(text)
    if _INT.fullmatch(text):
        if len(text) > MAX_NUMBER_DIGITS + 2:
            return text, _too_long(text)
        return int(text, 0), ""
    if _FLOAT.fullmatch(text):
        number = float(text)
        return (number, "") if math.isfinite(number) else (text, "the number is not finite")
    return text, ""


def _too_long(text: str) -> str:
    if not _INT.fullmatch(text) and not _FLOAT.fullmatch(text):
        return ""
    return f"a number of {len(text)} characters; at most {MAX_NUMBER_DIGITS} digits are read"


@dataclass(frozen=True, slots=True, eq=False)
class LocatedValue:
    """A value of the spec.

    `at` is the range of its use (of an alias, not of its anchor), and `key` the range of its key. A
    `shared` value is under an anchor, an alias or a merge key: a change of its text would change
    other values too.
    """

    node: Node
    at: TextRange
    key: TextRange | None = None
    shared: bool = False
    origins: tuple[RelatedRange, ...] = ()
    children: Map[str | int, LocatedValue] = field(default_factory=dict)

    def walk(self, route: Route) -> tuple[LocatedValue, ...]:
        """Return the values along a route, this one first, as far as the route exists."""
        passed = [self]
        for part in route:
            child = passed[-1].children.get(part)
            if child is None:
                break
            passed.append(child)
        return tuple(passed)

    def find(self, route: Route) -> LocatedValue | None:
        """Return the value at a route, or None."""
        passed = self.walk(route)
        return passed[-1] if len(passed) == len(route) + 1 else None

    def texts(self) -> tuple[str, ...]:
        """Return the texts of all scalars in the value."""
        if isinstance(self.node, Scalar):
            return (self.node.value,)
        return tuple(text for child in self.children.values() for text in child.texts())

    def data(self) -> Any:
        """Return the value as plain Python data."""
        if isinstance(self.node, Scalar):
            return self.node.resolved
        if isinstance(self.node, Sequence):
            return [child.data() for child in self.children.values()]
        return {key: child.data() for key, child in self.children.items()}


def build_value_tree(
    item: Item,
    key: TextRange | None = None,
    *,
    shared: bool = False,
    origins: tuple[RelatedRange, ...] = (),
) -> LocatedValue:
    """Return the tree of an item; the weight limit of the parser bounds its size."""
    node = resolve_alias(item)
    inner = origins
    if isinstance(item, Alias):
        origins = ((to_text_range(node), f"&{item.name} is set here"), *origins)
        inner = ((to_text_range(item), f"used here, as *{item.name}"), *inner)
    shared = shared or node.anchored or isinstance(item, Alias)
    children: dict[str | int, LocatedValue] = {}
    if isinstance(node, Sequence):
        children = {
            index: build_value_tree(child, shared=shared, origins=inner)
            for index, child in enumerate(node.items)
        }
    elif isinstance(node, Mapping):
        children = {
            entry.key.value: build_value_tree(
                entry.value,
                to_text_range(entry.key),
                shared=shared or entry.key.anchored,
                origins=inner,
            )
            for entry in node.entries
            if not entry.is_merge
        }
        for part in _merge_sources(node):
            merged = build_value_tree(
                part, shared=True, origins=((to_text_range(part), "merged in here"), *origins)
            )
            for name, child in merged.children.items():
                children.setdefault(name, child)
    return LocatedValue(node, to_text_range(item), key, shared, origins, children)


def _merge_sources(node: Mapping) -> list[Item]:
    parts: list[Item] = []
    for entry in node.entries:
        if entry.is_merge:
            value = resolve_alias(entry.value)
            parts += value.items if isinstance(value, Sequence) else (entry.value,)
    return [part for part in parts if isinstance(resolve_alias(part), Mapping)]
