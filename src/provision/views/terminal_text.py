"""How text lies on a terminal: colours, the cells a character takes, lines broken to a width."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

ELLIPSIS = "..."


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
    """Writes text in a colour, or plainly."""

    color: bool

    def __call__(self, text: str, ink: Style | None) -> str:
        """Return `text` in `ink`; unchanged without colour or ink."""
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
    """Return `text`, cut to `width` cells with an ellipsis at the end where it is longer."""
    if display_width(text) <= width:
        return text
    return _head(text, max(0, width - len(ELLIPSIS))) + ELLIPSIS[: max(0, width)]


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` cells, between words if possible.

    Line breaks in the text stay. The result is never empty.
    """
    return [line for paragraph in text.split("\n") for line in _wrapped(paragraph, max(1, width))]


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
