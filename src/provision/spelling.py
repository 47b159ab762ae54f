"""Words in hints: the known words that a misspelled word may mean, and command lines.

`nearest_word` is strict: it is for fixes, and for names that differ by a slip. `nearest_words` is
lenient: it is for the question "did you mean".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import PurePath

MAX_WORD_LENGTH = 64
"""Code points. Comparison takes quadratic time, and no word of the spec language is longer."""

MIN_PREFIX = 2
"""Characters; a shorter word begins too many names."""


def nearest_words(
    word: str, known: Iterable[str], most: int = 5, cutoff: float = 0.6
) -> tuple[str, ...]:
    """Return the known words that resemble a word, the most similar first.

    Args:
        word: the word as it was written.
        known: the words that exist. If some differ from `word` only in case, hyphens, underscores
            and spaces, only these are returned.
        most: number of words to return.
        cutoff: least similarity, from 0 to 1; below the default, suggestions puzzle users.
    """
    from difflib import get_close_matches  # slow to import, and most words are spelt correctly

    if len(word) > MAX_WORD_LENGTH:
        return ()
    by_normalized: dict[str, list[str]] = {}
    for candidate in dict.fromkeys(known):
        by_normalized.setdefault(normalize_word(candidate), []).append(candidate)
    normalized = normalize_word(word)
    if normalized in by_normalized:
        return tuple(by_normalized[normalized][:most])
    near = get_close_matches(normalized, list(by_normalized), n=most, cutoff=cutoff)
    return tuple(candidate for key in near for candidate in by_normalized[key])[:most]


def normalize_word(word: str) -> str:
    """Return a word in lower case, without hyphens, underscores and spaces."""
    return "".join(character for character in word.lower() if character not in "-_ ")


def nearest_word(word: str, known: Iterable[str], most: int) -> str | None:
    """Return the known word at the least edit distance, at most `most`.

    Of several, it is one with the same letters ("lint" for "lnit"), else the first by alphabet.
    """
    best, letters = None, sorted(word)
    for candidate in sorted(
        known, key=lambda known_word: (sorted(known_word) != letters, known_word)
    ):
        distance = edit_distance(word, candidate, most)
        if distance <= most:
            best, most = candidate, distance - 1
        if most < 0:
            break
    return best


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the question whether a known name was meant, for a hint; "" if none is near.

    A name is near if it begins with the word, or if it differs by one or two slips.
    """
    names = sorted(known)
    beginnings = [name for name in names if len(word) > MIN_PREFIX and name.startswith(word)]
    near = beginnings[0] if len(beginnings) == 1 else None
    if near is None and len(word) <= MAX_WORD_LENGTH:
        near = nearest_word(word, names, max(1, min(2, len(word) // 4)))
    return f"did you mean '{near}'?" if near is not None else ""


def edit_distance(a: str, b: str, most: int) -> int:
    """Return the Damerau-Levenshtein distance of two words, or `most` + 1 if it is greater.

    One edit adds, removes or changes a character, or swaps two neighbours.
    """
    # Each edit changes at most one character of either word, which rules out most pairs cheaply.
    if abs(len(a) - len(b)) > most or len(set(a) ^ set(b)) > 2 * most:
        return most + 1
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    # An unchanged character moves by at most `most` positions. If none of the first characters is
    # unchanged, each of them is an edit.
    if len(a) > most and not set(a[: most + 1]) & set(b[: 2 * most + 1]):
        return most + 1
    previous: list[int] = []
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        previous, before_previous, row = row, previous, [i]
        for j, right in enumerate(b, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, before_previous[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(previous) > most:
            return most + 1
    return min(row[-1], most + 1)


def format_command(verb: str, spec: PurePath, target: str = "", *, sandbox: bool = False) -> str:
    """Return the command line that applies a verb to a spec, or to one of its targets."""
    options = f" --target {shlex.quote(target)}" if target else ""
    if sandbox:
        options += " --sandbox"
    return f"provision {verb} {shlex.quote(str(spec))}{options}"


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def join_words(words: Sequence[str]) -> str:
    """Return the words of a sentence's list: "a", "a and b", "a, b and c"."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def with_article(name: str) -> str:
    """Return a name that is spelled out, such as that of a GPU, with "a" or "an": an L4."""
    return f"{'an' if name[:1].upper() in set('AEFHILMNORSX') else 'a'} {name}"
