"""The text of a spec file, the YAML nodes in it with their positions, and the tree of values."""

from __future__ import annotations

import codecs
import math
import re
from bisect import bisect_right
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from itertools import accumulate, count
from operator import add
from typing import Any, NamedTuple

from provision.diagnostics import Diagnostic, Position, Route, Span
from provision.source.findings import make_finding

_BREAK = re.compile(r"\r\n|\n|\r")
_WIDE_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BLANKS = str.maketrans("\t\n\r", "   ")
_ZERO_BYTE_PATTERNS = {
    "000x": "utf-32-be",
    "x000": "utf-32-le",
    "0x0x": "utf-16-be",
    "x0x0": "utf-16-le",
}
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


@dataclass(frozen=True, slots=True, eq=False)
class TextFile:
    """A decoded file: its display name, its text without byte order mark, and its line starts.

    Lines end at CR LF, LF or CR, as in editors; U+2028 and similar characters, which are line
    breaks in YAML, do not count.
    """

    name: str
    content: str
    bom: bool
    starts: tuple[int, ...]

    def position(self, offset: int) -> Position:
        """Return the position of the character at an offset."""
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1] + 1, offset)

    def span(self, start: int, end: int) -> Span:
        """Return the span of a range, limited to the text."""
        start = max(0, min(start, len(self.content)))
        return Span(
            self.name, self.position(start), self.position(max(start, min(end, len(self.content))))
        )

    def end_of_line(self, offset: int) -> int:
        """Return the offset at which the line of an offset ends, before its line break."""
        line_break = _BREAK.search(self.content, offset)
        return line_break.start() if line_break else len(self.content)

    def start_of_line(self, offset: int) -> int:
        """Return the offset at which the line of an offset starts."""
        return self.starts[bisect_right(self.starts, offset) - 1]

    def line_break(self) -> str:
        """Return the first line break of the file, LF if it has none."""
        line_break = _BREAK.search(self.content)
        return line_break.group() if line_break else "\n"


class TextRange(NamedTuple):
    """A range of a text by offsets, the end exclusive; cheaper to create than a `Span`."""

    text: TextFile
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The range in lines and columns."""
        return self.text.span(self.start, self.end)


def to_text_file(name: str, content: str, *, bom: bool = False) -> TextFile:
    """Return text content as a file."""
    if "\r" in content:
        starts = (0, *(match.end() for match in _BREAK.finditer(content)))
    else:  # the same in a fifth of the time
        lengths = map(len, content.split("\n")[:-1])
        starts = tuple(map(add, accumulate(lengths, initial=0), count()))
    return TextFile(name, content, bom, starts)


def decode_file(name: str, raw: bytes) -> tuple[TextFile, tuple[Diagnostic, ...]]:
    """Decode a file, with a finding if it is not UTF-8 or contains characters that YAML forbids.

    Undecodable bytes become U+FFFD, so that the finding has a position.
    """
    wide = next((codec for mark, codec in _WIDE_MARKS if raw.startswith(mark)), None)
    if wide is None:
        # Without a mark, the zero bytes around the first ASCII character identify the encoding
        # (YAML 1.2.2, section 5.2).
        pattern = "".join("0" if byte == 0 else "x" for byte in raw[:4])
        wide = _ZERO_BYTE_PATTERNS.get(pattern)
    bom = raw.startswith(codecs.BOM_UTF8)
    body = raw.removeprefix(codecs.BOM_UTF8)
    offset, hint = 0, "save the file as UTF-8"
    if wide is not None:
        text = to_text_file(name, raw.decode(wide, "replace").removeprefix("\ufeff"))
        message = f"the file is encoded in {wide[:6].upper()}; expected UTF-8"
        hint, end = f"save it as UTF-8, for example with `iconv -f {wide[:6]} -t utf-8`", 0
    else:
        try:
            text = to_text_file(name, body.decode("utf-8"), bom=bom)
        except UnicodeDecodeError as error:
            text = to_text_file(name, body.decode("utf-8", "replace"), bom=bom)
            offset = len(body[: error.start].decode("utf-8"))
            message, end = f"byte 0x{body[error.start]:02x} is not UTF-8", offset + 1
        else:
            return text, _find_control_character(text)
    return text, (make_finding("encoding", message, text.span(offset, end), hint=hint),)


def _find_control_character(text: TextFile) -> tuple[Diagnostic, ...]:
    # All characters that are printable in Python are allowed in YAML, and the pattern below takes
    # long to compile.
    if text.content.translate(_BLANKS).isprintable():
        return ()
    # The printable set of YAML 1.2.2, section 5.1; U+FEFF is allowed at the start only.
    forbidden = re.search(
        "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
        text.content,
    )
    if forbidden is None:
        return ()
    code = ord(forbidden.group())
    message = f"U+{code:04X} is not allowed in YAML"
    if code == 0:
        message += " (a NUL: is this a binary file?)"
    hint = "delete the character, or write it as an escape in double quotes"
    return (make_finding("control-character", message, text.span(*forbidden.span()), hint=hint),)


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
    return f"the number has {len(text)} characters; the limit is {MAX_NUMBER_DIGITS} digits"


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
        origins = ((to_text_range(node), f"&{item.name} is defined here"), *origins)
        inner = ((to_text_range(item), f"used here as *{item.name}"), *inner)
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
