"""Suggestions for misspelled words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_WORD_LENGTH = 64
"""Code points: a comparison takes quadratic time, and no word of the spec is longer."""
_CUTOFF = 0.6
"""The default of difflib; less similar suggestions are rarely useful."""


def nearest_words(word: str, known: Iterable[str], limit: int = 5) -> tuple[str, ...]:
    """Return the known words nearest to a word, best first.

    Only one word is returned if it differs just in case, `-`, `_` or blanks.
    """
    if len(word) > MAX_WORD_LENGTH:
        return ()
    normalized = normalize_word(word)
    by_normalized: dict[str, list[str]] = {}
    for candidate in dict.fromkeys(known):
        by_normalized.setdefault(normalize_word(candidate), []).append(candidate)
    keys = [normalized]
    if normalized not in by_normalized:
        keys = get_close_matches(normalized, list(by_normalized), n=limit, cutoff=_CUTOFF)
    return tuple(candidate for key in keys for candidate in by_normalized[key])[:limit]


def normalize_word(word: str) -> str:
    """Return a word in lower case without `-`, `_` and blanks."""
    return "".join(character for character in word.lower() if character not in "-_ ")
