"""The values of a document with their positions: aliases followed and merge keys flattened."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from typing import Any

from provision.diagnostics import Route
from provision.source.nodes import (
    Alias,
    Item,
    Mapping,
    Node,
    Scalar,
    Sequence,
    resolve_alias,
    to_text_range,
)
from provision.source.text import TextRange

RelatedRange = tuple[TextRange, str]
"""A further place that has to do with a value, and what it has to do with it."""


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
