"""Which known word was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_WORD_LENGTH = 64
"""Code points: comparing takes time with the square of the length, and no word of the language is
longer.
"""
_CUTOFF = 0.6
"""The default of difflib; below it, suggestions puzzle more than they help."""


def nearest_words(word: str, known: Iterable[str], most: int = 5) -> tuple[str, ...]:
    """Return the known words that `word` may stand for, best first; one alone when only case, `-`,
    `_` or blanks differ.
    """
    words = list(dict.fromkeys(known))
    if len(word) > MAX_WORD_LENGTH:
        return ()
    folded: dict[str, list[str]] = {}
    for other in words:
        folded.setdefault(normalize_word(other), []).append(other)
    if normalize_word(word) in folded:
        return tuple(folded[normalize_word(word)][:most])
    found = get_close_matches(normalize_word(word), list(folded), n=most, cutoff=_CUTOFF)
    return tuple(other for key in found for other in folded[key])[:most]


def normalize_word(word: str) -> str:
    """Return `word` without what is often mistaken: case, and `-`, `_` or blanks between its parts."""  # noqa: E501
    return "".join(character for character in word.lower() if character not in "-_ ")
