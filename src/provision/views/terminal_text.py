"""Text for a terminal: colors, the cells that a character takes, lines broken to a width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

ELLIPSIS = "..."
LABEL_WIDTH = 12
"""Cells of a row before the text of a field."""


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
        return (
            f"\x1b[{ink.value}m{text}\x1b[0m" if self.color and ink is not None and text else text
        )


def display_width(text: str) -> int:
    """Return how many terminal cells `text` takes: wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    from rich.cells import get_character_cell_size

    return sum(get_character_cell_size(character) for character in text)


def truncate(text: str, width: int) -> str:
    """Return `text`, cut to `width` cells with an ellipsis at the end if it is longer."""
    if display_width(text) <= width:
        return text
    return _head(text, max(0, width - len(ELLIPSIS))) + ELLIPSIS[: max(0, width)]


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` cells, between words if possible.

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
    for word in re.findall(r"\s*\S+", paragraph):
        if display_width(line + word) <= width:
            line += word
            continue
        if line:
            yield line
        line = word.lstrip()
        while display_width(line) > width:
            head = _head(line, width) or line[0]
            yield head
            line = line[len(head) :]
    yield line


def _head(text: str, width: int) -> str:
    taken = 0
    for place, character in enumerate(text):
        taken += display_width(character)
        if taken > width:
            return text[:place]
    return text
