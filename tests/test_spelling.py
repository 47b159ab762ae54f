"""Distance between words, against the definition."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.spelling import edit_distance, nearest_word, with_article

_WORDS = st.text("abc", max_size=7)


def _defined(one: str, other: str) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        best = min(
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
            distance(i - 1, j - 1) + (one[i - 1] != other[j - 1]),
        )
        if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
            best = min(best, distance(i - 2, j - 2) + 1)
        return best

    return distance(len(one), len(other))


@given(_WORDS, _WORDS, st.integers(0, 3))
def test_slips_are_the_definition_up_to_the_limit(one: str, other: str, most: int) -> None:
    assert edit_distance(one, other, most) == min(_defined(one, other), most + 1)


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [("pstuil", "psutil", 1), ("torch", "torch", 0), ("privat", "private", 1), ("ab", "cd", 2)],
)
def test_slips(one: str, other: str, count: int) -> None:
    assert edit_distance(one, other, 2) == count


def test_nearest() -> None:
    assert nearest_word("privat", ["public", "private", "privates"], 2) == "private"
    assert nearest_word("zzz", ["public", "private"], 2) is None
    assert nearest_word("ab", [], 2) is None
    assert nearest_word("lnit", ["init", "lint"], 1) == "lint"


@pytest.mark.parametrize(
    ("name", "text"), [("T4", "a T4"), ("L4", "an L4"), ("A100-40GB", "an A100-40GB")]
)
def test_the_article_of_a_gpu_follows_its_first_letter(name: str, text: str) -> None:
    assert with_article(name) == text
