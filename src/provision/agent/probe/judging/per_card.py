"""Judges each of several cards by itself, reports the worst, and names it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any, cast

from ..model import Judgement, Status
from ..observing.cards import CARD_NAMES_KEY, PER_CARD_PREFIX
from .judgement import Judge, JudgeInput

_GRAVITY = (Status.PASS, Status.SKIP, Status.WARN, Status.UNKNOWN, Status.FAIL)
_NAMED = 3


def judge_each_card(judge: Judge) -> Judge:
    """Return a judge of any number of cards from the judge of a single card."""

    def judged(given: JudgeInput) -> Judgement:
        names = given.get(CARD_NAMES_KEY)
        return _of_several(judge, given, names) if names else judge(given)

    return judged


def describe_cards(names: list[str], affected: list[str]) -> str:
    """Return which cards of how many, as people find them."""
    first, more = affected[:_NAMED], len(affected) - _NAMED
    parts = [*first, f"{more} more"] if more > 0 else first
    message = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    return f"on {message}, {len(affected)} of {len(names)} cards"


def _of_several(judge: Judge, given: JudgeInput, names: list[str]) -> Judgement:
    pairs = [(name, judge(_card(given, index))) for index, name in enumerate(names)]
    gravest = max((judgement.status for _, judgement in pairs), key=_GRAVITY.index)
    those = [(name, judgement) for name, judgement in pairs if judgement.status is gravest]
    # The keys without a card are those of the worst one: their message is its message.
    message = judge(given).message
    name, worst = next((pair for pair in those if pair[1].message == message), those[0])
    if gravest is not Status.PASS:
        others = [other for other, _ in those if other != name]
        return replace(worst, message=f"{describe_cards(names, [name, *others])}: {worst.message}")
    extent = f"lowest of {len(names)} cards: {name}"
    if all(judgement.message == worst.message for _, judgement in pairs):
        extent = f"the same on all {len(names)} cards"
    return replace(worst, message=f"{worst.message}; {extent}")


def _card(given: JudgeInput, index: int) -> JudgeInput:
    own = {
        key[len(PER_CARD_PREFIX) :]: given[key][index]
        for key in given.seen
        if key.startswith(PER_CARD_PREFIX) and key != CARD_NAMES_KEY
    }
    return replace(given, seen=ChainMap(own, cast("MutableMapping[str, Any]", given.seen)))
