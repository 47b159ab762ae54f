"""Judges what several cards compute together."""

from __future__ import annotations

from ..checks.multi_gpu import BUS_GB_S, BUS_WARNS
from ..model import Judgement
from ..proofs.allreduce import STEPS
from .judgement import RESTART_OR_REPLACE, JudgeInput, fails, passes, skipped, unknown, warns
from .symptoms import explain_error

_HANG = (
    "the cards cannot reach each other, usually because a virtual machine blocks peer-to-peer "
    "copies or shared memory is too small"
)
_STUCK = "a card does not respond, or its process does not start"
_STUCK_FIX = f"check `nvidia-smi` and the card's Xid errors (`dmesg`); {RESTART_OR_REPLACE}"
_NAMED = 3
_HANG_FIX = (
    "try NCCL_P2P_DISABLE=1, then NCCL_IB_DISABLE=1; check /dev/shm; run with NCCL_DEBUG=INFO"
)


def _no_card(given: JudgeInput) -> Judgement:
    return (
        skipped("NCCL is only for NVIDIA cards")
        if given.expected.gpu_type == "mps"
        else unknown("torch sees no card to compute on (see T02)")
    )


def _alone(given: JudgeInput) -> Judgement:
    wrong = given["several.alone_wrong"]
    if wrong is None:
        return _no_card(given)
    if wrong == 0:
        return passes("NCCL starts and computes correct all-reduce results on one card", 0, 0)
    return fails(
        f"{wrong} all-reduce results on one card are wrong",
        0,
        wrong,
        "NCCL or the card is faulty",
        "recreate the environment; if the problem persists, use another machine",
    )


def _sums(given: JudgeInput) -> Judgement:
    wrong = given["several.sums_wrong"]
    if wrong is None:
        return _no_card(given)
    required, message, code = (
        given.expected.gpu_count,
        given["several.sums_ranks"],
        given["several.sums_exit"],
    )
    if code is None or code or message != required:
        return _broken(given, "sums")
    if wrong:
        ranks = given["several.sums_wrong_ranks"]
        affected = "all cards" if len(ranks) == required else _called(ranks)
        return fails(
            f"{wrong} all-reduce results across {required} cards are wrong (affected: {affected})",
            0,
            wrong,
            "a card, or the link between two cards, is faulty",
            "use another machine",
        )
    return passes(f"all-reduce results across {required} cards are correct", 0, 0)


def _broken(given: JudgeInput, name: str) -> Judgement:
    required, text, code = (
        given.expected.gpu_count,
        given[f"several.{name}_ranks"],
        given[f"several.{name}_exit"],
    )
    how = (
        f"an all-reduce across {required} cards hangs: {text} of them"
        if code is None
        else f"{text} of {required} cards"
    )
    end = "finished" if code is None else f"finished (exit code {code})"
    # All wait for one that is behind the others: that card is at fault, and not the link.
    behind = _behind(given[f"several.{name}_steps"])
    printed = given.get(f"_several.{name}_tail")
    cause, fix = explain_error(printed or "")
    if cause is None or fix is None:
        cause, fix = (_STUCK, _STUCK_FIX) if behind else (_HANG, _HANG_FIX)
        if code is not None:
            cause, fix = "a card or its process failed", _HANG_FIX
    return fails(
        f"{how} {end}{behind}.{f' Their processes printed: {printed}' if printed else ''}",
        required,
        text,
        cause,
        fix,
    )


def _behind(steps: list[str | None]) -> str:
    """Return the ranks that fell behind the others, as text; "" for none."""
    if not any(steps):
        return f"; none of them {STEPS[0]}"
    far = [STEPS.index(step) if step in STEPS else -1 for step in steps]
    late = [rank for rank, step in enumerate(far) if step < max(far)]
    if not late:
        return ""
    return f"; {_called(late)} never {STEPS[min(far) + 1]}"


def _called(ranks: list[int]) -> str:
    return ", ".join(f"cuda:{rank}" for rank in ranks[:_NAMED]) + (
        f" and {len(ranks) - _NAMED} more" if len(ranks) > _NAMED else ""
    )


def _bandwidth(given: JudgeInput) -> Judgement:
    observed, count = given["several.bus_gb_s"], given.expected.gpu_count
    if given["several.bandwidth_wrong"] is None:
        return _no_card(given)
    if given["several.bandwidth_exit"] != 0 or observed is None:
        return _broken(given, "bandwidth")
    name = given.get("gpu.name") or ""
    # The figures are of cards on NVSwitch: a PCIe card of the same generation, or a bridged pair,
    # has another bus.
    switched = not {"PCIe", "NVL"} & set(name.split())
    known = next(
        (
            speed
            for (card, cards), speed in BUS_GB_S.items()
            if switched and cards == count and card in name
        ),
        None,
    )
    if known is None:
        return passes(
            f"{observed:.3g} GB/s of bus bandwidth; there is no reference value for {count} "
            "cards of this type",
            None,
            observed,
        )
    if observed < BUS_WARNS.value * known:
        return warns(
            f"only {observed:.3g} GB/s of bus bandwidth ({known:g} GB/s is typical)",
            known,
            observed,
            "a link between two cards is down or slow, or peer-to-peer copies are disabled",
            "run `nvidia-smi topo -m` and `nvidia-smi nvlink -s`",
            BUS_WARNS,
        )
    return passes(
        f"{observed:.3g} GB/s of bus bandwidth ({known:g} GB/s is typical)",
        known,
        observed,
        BUS_WARNS,
    )


JUDGES = {
    "C01": _alone,
    "C02": _sums,
    "C03": _bandwidth,
}
