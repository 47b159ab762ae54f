"""How far one word is from another."""

from __future__ import annotations

from collections.abc import Iterable


def edit_distance(one: str, other: str, most: int) -> int:
    """Return how many slips (a letter added, lost or changed, two neighbours swapped) lead from one
    word to the other; `most` + 1 when it takes more.
    """
    # Each slip changes at most one letter of either word, so most pairs are told apart without
    # comparing them in full.
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return most + 1
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    # A letter that stays moves by at most `most` places: where none of the first ones can have
    # stayed, each of them is a slip.
    if len(one) > most and not set(one[: most + 1]) & set(other[: 2 * most + 1]):
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(before) > most:
            return most + 1
    return min(row[-1], most + 1)


def nearest_word(word: str, known: Iterable[str], most: int) -> str | None:
    """Return the known word that takes the fewest slips, at most `most` of them; the first in the
    alphabet when several do.
    """
    best = None
    for other in sorted(known):
        distance = edit_distance(word, other, most)
        if distance <= most:
            best, most = other, distance - 1
        if most < 0:
            break
    return best
