"""Judges each card's memory and speed, against its vendor's figures and the other cards."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ..byte_sizes import format_bytes
from ..checks.device import (
    BURN_STEADINESS,
    CARD_SPREAD,
    COPY_FAILS,
    COPY_WARNS,
    FREE_SHARE,
    LINK_FAILS,
    LINK_WARNS,
    PRODUCT_FAILS,
    PRODUCT_WARNS,
    TESTED_SHARE,
)
from ..checks.driver import NO_SLOWDOWN, SLOWDOWN_REASONS, slowdown_faults
from ..model import Judgement, Status, Threshold
from ..observing.cards import CARD_NAMES_KEY, PER_CARD_PREFIX
from .judgement import (
    END_OTHER_PROGRAM,
    Judge,
    JudgeInput,
    fails,
    format_number,
    is_number,
    passes,
    skipped,
    unknown,
    warns,
)
from .per_card import describe_cards, judge_each_card

_MODEST = frozenset({"t4", "l4", "pcie"})
"""Words in the names of cards whose power limit keeps them below their peak: how far is not
measured yet, so they only warn.
"""
_SLOW = (
    "another program is computing on the card, its power or clocks are limited, it is too hot, "
    "or only a part of it (MIG) is available"
)
_SLOW_FIX = (
    "run `nvidia-smi -q -d CLOCK,POWER,PERFORMANCE`; end other programs; if the card stays "
    "slow, use another machine"
)


def _no_card(given: JudgeInput, what: str) -> Judgement:
    return (
        skipped("only measured on NVIDIA cards")
        if given.expected.gpu_type == "mps"
        else unknown(f"torch sees no card, {what} (see T02)")
    )


def _allocated(given: JudgeInput) -> Judgement:
    total = given["memory.total_bytes"]
    if total is None:
        return _no_card(given, "so no memory could be allocated")
    free, required, filled = (given[f"memory.{name}_bytes"] for name in ("free", "wanted", "held"))
    if filled < required:
        return fails(
            f"only {format_bytes(filled)} of {format_bytes(required)} could be allocated",
            required,
            filled,
            "another program is allocating memory, or the card has less memory than it reports",
            END_OTHER_PROGRAM,
            Threshold(required, "bytes", "nine tenths of the free memory, in whole GiB"),
        )
    if free < FREE_SHARE.value * total:
        return warns(
            f"only {format_bytes(free)} of {format_bytes(total)} is free",
            total,
            free,
            "another program or notebook is using the card's memory",
            END_OTHER_PROGRAM,
            FREE_SHARE,
        )
    return passes(f"{format_bytes(filled)} of {format_bytes(total)} can be allocated", total, free)


def _written(given: JudgeInput) -> Judgement:
    total = given["memory.total_bytes"]
    if total is None:
        return _no_card(given, "so no memory could be tested")
    wrong, filled = given["memory.wrong_words"], given["memory.held_bytes"]
    if wrong:
        words = "1 word" if wrong == 1 else f"{wrong} words"
        return fails(
            f"{words} of the card's memory changed after being written",
            0,
            wrong,
            "the card's memory is faulty",
            "delete this machine and use another one",
        )
    if wrong is None or filled < TESTED_SHARE.value * total:
        free = given.get("memory.free_bytes")
        why = (
            f" ({format_bytes(free)} was free; the test uses whole GiB and leaves a tenth of the "
            "free memory)"
            if free is not None
            else ""
        )
        return skipped(
            f"only {format_bytes(filled)} of {format_bytes(total)} was tested, less than "
            f"{TESTED_SHARE.value:.0%}{why}",
            filled,
        )
    return passes(
        f"{format_bytes(filled)} of the card's memory was tested without errors",
        total,
        filled,
        TESTED_SHARE,
    )


def _copied(given: JudgeInput) -> Judgement:
    speed = given["speed.copy_gb_s"]
    if speed is None:
        return _no_card(given, "so nothing was copied")
    peak = given.expected.card.bandwidth_gb_s if given.expected.card else None
    return _share("copies on the card", speed, peak, "GB/s", (COPY_FAILS, COPY_WARNS))


def _moved(given: JudgeInput) -> Judgement:
    pair = (given["speed.to_card_gb_s"], given["speed.from_card_gb_s"])
    if None in pair:
        return _no_card(given, "so nothing was moved")
    slower = "to the card" if pair[0] <= pair[1] else "from the card"
    return _share(
        f"pinned copies {slower}",
        min(pair),
        given["link.gb_s"],
        "GB/s",
        (LINK_FAILS, LINK_WARNS),
    )


def _multiplied(given: JudgeInput) -> Judgement:
    name, speed = given["speed.format"], given["speed.product_tflops"]
    if speed is None:
        return _no_card(given, "so nothing was multiplied")
    return judge_product_speed(given, name, speed)


def judge_product_speed(given: JudgeInput, name: str, speed: float) -> Judgement:
    """Judge TFLOP/s of products in a format against the peak of the declared card."""
    judgement = _share(
        f"{name} products", speed, _peak(given, name), "TFLOP/s", (PRODUCT_FAILS, PRODUCT_WARNS)
    )
    modest = _MODEST & set(
        re.split(
            r"[^a-z0-9]+",
            f"{given.get('gpu.name') or ''} {given.expected.gpu_type}".lower(),
        )
    )
    return _softer(judgement) if modest else judgement


def _softer(judgement: Judgement) -> Judgement:
    """Return a warning in place of a failure."""
    return judgement if judgement.cause is None else replace(judgement, status=Status.WARN)


def _peak(given: JudgeInput, name: str) -> float | None:
    return given.expected.card.tflops.get(name) if given.expected.card else None


def _share(
    what: str, speed: Any, peak: float | None, unit: str, bounds: tuple[Threshold, Threshold]
) -> Judgement:
    """Judge a speed by its share of a peak: fail below the first bound, warn below the second.

    Without a peak there is nothing to compare with.
    """
    if not is_number(speed):
        return fails(
            f"{what}: {speed} {unit} is not a valid speed",
            peak,
            speed,
            "the card's clock or memory is faulty",
            "use another machine",
        )
    if not peak:
        return passes(
            f"{what}: {format_number(speed)} {unit}; no reference to compare with",
            None,
            speed,
        )
    share = speed / peak
    message = f"{what}: {format_number(speed)} {unit}, {share:.0%} of {peak:g} {unit}"
    for bound, judged in zip(bounds, (fails, warns), strict=True):
        if share < bound.value:
            return judged(message, peak, speed, _SLOW, _SLOW_FIX, bound)
    return passes(message, peak, speed, bounds[-1])


def _others(given: JudgeInput) -> Judgement:
    speeds = given["speed.others_tflops"]
    if speeds is None:
        return _no_card(given, "so nothing was multiplied")
    if not speeds:
        return skipped("the card supports no other format")
    if strange := [name for name, speed in sorted(speeds.items()) if not is_number(speed)]:
        return warns(
            f"no valid speed was measured for {', '.join(strange)} matrix products",
            None,
            speeds,
            "the card's clock is faulty",
            "use another machine",
        )
    slow = [
        name
        for name, speed in sorted(speeds.items())
        if (peak := _peak(given, name)) and not speed >= PRODUCT_FAILS.value * peak
    ]
    message = ", ".join(f"{name} {format_number(speed)}" for name, speed in sorted(speeds.items()))
    if slow:
        peaks = {name: _peak(given, name) for name in slow}
        return warns(
            f"TFLOP/s: {message}; less than half of the peak: {', '.join(slow)}",
            peaks,
            speeds,
            _SLOW,
            _SLOW_FIX,
            PRODUCT_FAILS,
        )
    return passes(f"TFLOP/s: {message}", None, speeds)


def _burnt(given: JudgeInput) -> Judgement:
    first, last, reasons = (
        given[f"burn.{name}"] for name in ("first_tflops", "last_tflops", "reasons")
    )
    if first is None:
        return _no_card(given, "so nothing was multiplied")
    if others := given["burn.other_results"]:
        return fails(
            f"the same matrix product gave a different result {others} times in one minute"
            f"{_heat(given)}",
            0,
            others,
            "the GPU computes incorrect results when hot, or its memory is faulty",
            "delete this machine and use another one",
        )
    slowed = (reasons or 0) & sum(SLOWDOWN_REASONS)
    if slowed or last < BURN_STEADINESS.value * first:
        why = f" (NVML: {', '.join(slowdown_faults([slowed]))})" if slowed else ""
        return fails(
            f"the speed changed from {format_number(first)} to {format_number(last)} TFLOP/s in "
            f"one minute{why}{_heat(given)}",
            first,
            last,
            "the card is too hot, or its power supply is too weak",
            _SLOW_FIX,
            NO_SLOWDOWN if slowed else BURN_STEADINESS,
        )
    return passes(
        f"{format_number(first)} TFLOP/s at the beginning, {format_number(last)} at the "
        f"end{_heat(given)}",
        first,
        last,
    )


def _heat(given: JudgeInput) -> str:
    heat, power = given["burn.temperature_c"], given["burn.power_w"]
    parts = [f"{heat} °C"] if heat is not None else []
    parts += [f"{power:.0f} W"] if power is not None else []
    return f"; maximum {' and '.join(parts)}" if parts else ""


def _compared_with_others(key: str, unit: str, judge: Judge) -> Judge:
    """Return a judge that also warns of a card that is slower than the others of the machine."""

    def judged(given: JudgeInput) -> Judgement:
        observed = judge(given)
        speeds = given.get(f"{PER_CARD_PREFIX}{key}")
        if observed.status is not Status.PASS or not speeds:
            return observed
        best, names = max(speeds), given[CARD_NAMES_KEY]
        slow = sorted(
            (speed, name)
            for speed, name in zip(speeds, names, strict=True)
            if speed < CARD_SPREAD.value * best
        )
        if not slow:
            return observed
        return warns(
            f"{describe_cards(names, [name for _, name in slow])}: "
            f"{format_number(slow[0][0])} {unit}; the fastest card reaches {format_number(best)} "
            f"{unit}",
            best,
            slow[0][0],
            _SLOW,
            _SLOW_FIX,
            CARD_SPREAD,
        )

    return judged


JUDGES = {
    "M01": judge_each_card(_allocated),
    "M02": judge_each_card(_written),
    "B01": _compared_with_others("speed.copy_gb_s", "GB/s", judge_each_card(_copied)),
    "B02": judge_each_card(_moved),
    "F01": _compared_with_others("speed.product_tflops", "TFLOP/s", judge_each_card(_multiplied)),
    "F02": judge_each_card(_others),
    "F03": judge_each_card(_burnt),
}
