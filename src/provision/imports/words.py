"""Splits the options of a line into words as a shell does, with their positions."""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""")
_PIECE = re.compile(r"""\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'""")


class Word(NamedTuple):
    """A word without its quotes, and the range that it has in the text."""

    text: str
    start: int
    end: int


def split_words(text: str, start: int = 0) -> tuple[Word, ...] | None:
    """Return the words of a text from an offset on, None if a quote is not closed."""
    words, position = [], start
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _WORD.match(text, position)
        if match is None:
            return None
        position = match.end()
        if position < len(text) and not text[position].isspace():
            return None
        words.append(Word(_PIECE.sub(_unquote, match[0]), match.start(), match.end()))
    return tuple(words)


def _unquote(match: re.Match[str]) -> str:
    escaped, double, single = match.groups()
    if escaped is not None:
        return escaped
    return single if single is not None else re.sub(r"\\(.)", r"\1", double)
