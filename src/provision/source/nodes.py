"""What a YAML document is made of: scalars, sequences and mappings, each knowing where it stands."""  # noqa: E501

from __future__ import annotations

import math
import re
from typing import NamedTuple

from provision.source.text import TextFile, TextRange

ScalarValue = str | int | float | bool | None
"""What a scalar may stand for."""

CORE_TAGS = {
    f"tag:yaml.org,2002:{name}": name
    for name in ("str", "int", "float", "bool", "null", "seq", "map")
}
MERGE_KEY = "<<"

MAX_NUMBER_DIGITS = 20
"""Digits: more than any 64-bit integer has (2**64 has 20)."""

# The core schema of YAML 1.2.2, section 10.3.2, but a leading zero keeps a number text: 0644 and
# 00:30 are no decimal numbers.
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class Scalar(NamedTuple):
    """One value: `value` is its text with quotes and escapes resolved, `resolved` what it stands
    for.

    `style` is the character that opens it (a quote, | or >), empty for a plain scalar. start and
    end leave out anchor and tag.
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
    """A list; `flow` tells [a, b] from the block form."""

    text: TextFile
    start: int
    end: int
    items: tuple[Item, ...]
    flow: bool
    anchored: bool
    weight: int
    height: int


class Mapping(NamedTuple):
    """Keys and values in the order in which they were written, duplicates and merge keys included."""  # noqa: E501

    text: TextFile
    start: int
    end: int
    entries: tuple[Entry, ...]
    flow: bool
    anchored: bool
    weight: int
    height: int


class Alias(NamedTuple):
    """A use (*name) of an anchored node; weight and height are the target's."""

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
        """Whether this is the merge key."""
        return self.key.value == MERGE_KEY and self.key.style == ""


def resolve_alias(item: Item) -> Node:
    """Return the node that is meant, behind an alias too."""
    return item.anchored_node if isinstance(item, Alias) else item


def to_text_range(item: Item) -> TextRange:
    """Return where an item stands."""
    return TextRange(item.text, item.start, item.end)


def resolve_scalar(text: str) -> tuple[ScalarValue, str]:
    """Return what a plain scalar stands for by the core schema of YAML 1.2, and what is wrong with
    it ("" when nothing is).

    Numbers beyond the limits stay text.
    """
    if text in _NULL:
        return None, ""
    if text in _BOOL:
        return _BOOL[text], ""
    # Nothing longer is worth a regular expression: no number we take is.
    head = text[: 2 * MAX_NUMBER_DIGITS + 16]
    if head[0] not in "+-.0123456789":
        return text, ""
    if _NOT_FINITE.fullmatch(head):
        return text, "the number is not finite"
    if len(text) > len(head):
        return text, _too_long(text)
    if _INT.fullmatch(text):
        return (text, _too_long(text)) if len(text) > MAX_NUMBER_DIGITS + 2 else (int(text, 0), "")
    if _FLOAT.fullmatch(text):
        number = float(text)
        return (number, "") if math.isfinite(number) else (text, "the number is not finite")
    return text, ""


def _too_long(text: str) -> str:
    return (
        f"a number of {len(text)} characters; at most {MAX_NUMBER_DIGITS} digits are read"
        if _INT.fullmatch(text) or _FLOAT.fullmatch(text)
        else ""
    )
