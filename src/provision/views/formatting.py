"""Text of views: values as people write them, and rows of a terminal with colors and widths."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

from provision.sanitize import escape_control, redact

_DIGEST = re.compile(r"\b[0-9a-f]{40,}\b")
_UP_TO_SEPARATOR = re.compile(r".*(?:/|[^/][_.,:;=@+&?-])", re.DOTALL)
_SIZE_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
ELLIPSIS = "..."
LABEL_WIDTH = 12
"""Cells of a row before the text of a field."""


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with every string in its mappings, lists and tuples changed."""
    match value:
        case Enum():
            return value
        case str():
            return change(value)
        case Mapping():
            return {
                map_strings(key, change): map_strings(item, change) for key, item in value.items()
            }
        case list():
            return [map_strings(item, change) for item in value]
        case tuple():
            items = (map_strings(item, change) for item in value)
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        case _:
            return value


def format_json_value(value: object, sizes: bool = False) -> str:
    """Return a JSON value as people write it.

    None is empty, long hexadecimal digests are shortened, and with `sizes` numbers are bytes.
    Empty lists in a mapping are left out.
    """
    match value:
        case None:
            return ""
        case str():
            return _DIGEST.sub(lambda digest: digest.group()[:12] + "...", to_safe_text(value))
        case bool():
            return "yes" if value else "no"
        case int() | float() if sizes:
            return format_amount(value, "bytes")
        case float():
            return f"{value:.6g}"
        case Mapping():
            return ", ".join(
                f"{format_json_value(key)}: {_inner(item, sizes)}"
                for key, item in value.items()
                if item != []
            )
        case list() | tuple():
            return ", ".join(_inner(item, sizes) for item in value)
        case _:
            return to_safe_text(str(value))


def to_safe_text(text: str) -> str:
    """Return foreign text without secrets, with control characters escaped."""
    return escape_control(redact(text))


def shorten_digest(digest: str) -> str:
    """Return a digest's algorithm and first twelve digits."""
    algorithm, colon, digits = digest.partition(":")
    return f"{algorithm}:{digits[:12]}" if colon else digest[:19]


def format_number(value: float) -> str:
    """Return a number with four significant digits, large ones with separators."""
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e15 else f"{value:.4g}"


def format_amount(value: float, unit: str) -> str:
    """Return a number with its unit; bytes as KiB to EiB (IEC 80000-13)."""
    if not unit.startswith("bytes"):
        return f"{format_number(value)} {unit}".strip()
    steps = min(len(_SIZE_UNITS) - 1, int(math.log2(max(1.0, abs(value)))) // 10)
    return f"{value / 1024**steps:.4g} {_SIZE_UNITS[steps]}{unit.removeprefix('bytes')}"


def format_seconds(value: float) -> str:
    """Return seconds with two decimals below one, one below ten, and none above."""
    decimals = int(value < 1) + int(value < 10)
    return f"{value:.{decimals}f}"


def _inner(value: object, sizes: bool) -> str:
    if not value and isinstance(value, (Mapping, list, tuple)):
        return "none"
    if isinstance(value, (list, tuple)):
        return f"[{format_json_value(value, sizes)}]"
    text = format_json_value(value, sizes)
    return f"({text})" if isinstance(value, Mapping) else text or "none"


class Style(StrEnum):
    """Colors, as parameters of "select graphic rendition" sequences (ECMA-48)."""

    ERROR = "1;31"
    WARNING = "1;33"
    INFO = "1;36"
    GOOD = "1;32"
    FRAME = "34"
    STRONG = "1"
    FAINT = "2"
    REMOVED = "31"
    ADDED = "32"


@dataclass(frozen=True, slots=True)
class Styler:
    """Writes text in color, or plainly."""

    color: bool

    def __call__(self, text: str, ink: Style | None) -> str:
        """Return `text` in `ink`; unchanged without color or ink."""
        if not (self.color and ink and text):
            return text
        return f"\x1b[{ink.value}m{text}\x1b[0m"


def display_width(text: str) -> int:
    """Return how many terminal cells `text` takes: wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    from rich.cells import get_character_cell_size

    return sum(get_character_cell_size(character) for character in text)


def truncate(text: str, width: int) -> str:
    """Return `text`; if it is wider than `width` cells, its first words and an ellipsis."""
    if display_width(text) <= width:
        return text
    head = _head(text, max(0, width - len(ELLIPSIS)))
    words, space, _ = head.rstrip().rpartition(" ")
    if words.strip() and space and text[len(head)] != " ":
        head = words + space
    return head + ELLIPSIS[: max(0, width)]


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` cells, between words.

    A word that is longer than a line, such as a path, is broken behind a separator if it has one.
    Line breaks in the text stay. The result is never empty.
    """
    return [line for paragraph in text.split("\n") for line in _wrapped(paragraph, max(1, width))]


def clip(text: str, width: int, max_rows: int | None) -> list[str]:
    """Break a text into at most `max_rows` rows; an ellipsis ends the last one if text is left."""
    rows = wrap(text, width)
    if max_rows is None or len(rows) <= max_rows:
        return rows
    last = truncate(rows[max_rows - 1] + " " * width, width).rstrip(" .")
    return [*rows[: max_rows - 1], last + ELLIPSIS]


def indent_rest(lead: str, rows: Iterable[str], indent: int) -> Iterator[str]:
    """Yield the first row after `lead`, and the others after `indent` blanks."""
    for row in rows:
        yield lead + row
        lead = " " * indent


def labeled_rows(
    label: str, rows: Iterable[str], styler: Styler | None = None, style: Style | None = None
) -> Iterator[str]:
    """Yield rows to the right of a label."""
    shown = styler(label, style) if styler else label
    return indent_rest(f"  {shown}{' ' * (LABEL_WIDTH - 2 - len(label))}", rows, LABEL_WIDTH)


def _wrapped(paragraph: str, width: int) -> Iterator[str]:
    line = ""
    # A number and its unit are one word.
    for word in re.findall(r"\s*\S*\d (?:s|[KMGT]i?B)(?!\w)\S*|\s*\S+", paragraph):
        if display_width(line + word) <= width:
            line += word
            continue
        if line:
            yield line
        line = word.lstrip()
        while display_width(line) > width:
            head = _head(line, width) or line[0]
            if separator := _UP_TO_SEPARATOR.match(head):
                head = separator.group()
            yield head
            line = line[len(head) :].lstrip()
    yield line


def _head(text: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += display_width(character)
        if taken > width:
            return text[:index]
    return text
