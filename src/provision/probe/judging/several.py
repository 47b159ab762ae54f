"""Judges what several cards compute together."""

from __future__ import annotations

from collections.abc import Callable

from ..checks.several import BUS_GB_S, BUS_WARNS
from ..values import Judgement
from .cases import Case, bad, ok, skipped, unknown, warned

_HANG = "the cards do not reach each other: often peer-to-peer copies that a virtual machine blocks, or too little shared memory"
_HANG_FIX = "try NCCL_P2P_DISABLE=1, then NCCL_IB_DISABLE=1; look at /dev/shm; run with NCCL_DEBUG=INFO"


def _no_card(case: Case) -> Judgement:
    return skipped("NCCL is for NVIDIA cards") if case.expected.gpu_type == "mps" else unknown("no card is there to add up (see T02)")


def _alone(case: Case) -> Judgement:
    wrong = case.seen["several.alone_wrong"]
    if wrong is None:
        return _no_card(case)
    if wrong == 0:
        return ok("NCCL starts, and one card adds up right", 0, 0)
    return bad(f"{wrong} sums of one card are wrong", 0, wrong, "a faulty NCCL or card", "make the environment again, then take another machine")


def _sums(case: Case) -> Judgement:
    wrong = case.seen["several.sums_wrong"]
    if wrong is None:
        return _no_card(case)
    wanted, told, code = case.expected.gpu_count, case.seen["several.sums_ranks"], case.seen["several.sums_exit"]
    if code is None:
        return bad(f"{wanted} cards hang when they add up: {told} of them came to an end. {_tail(case)}", wanted, told, _HANG, _HANG_FIX)
    if code or told != wanted:
        cause = "a card or its process failed"
        return bad(f"{told} of {wanted} cards came to an end (exit code {code}). {_tail(case)}", wanted, told, cause, _HANG_FIX)
    if wrong:
        return bad(f"{wrong} sums over {wanted} cards are wrong", 0, wrong, "a faulty card, or a faulty link between two", "take another machine")
    return ok(f"{wanted} cards add up right", 0, 0)


def _tail(case: Case) -> str:
    return f"They printed: {case.seen['_several.tail']}"


def _bandwidth(case: Case) -> Judgement:
    found, count = case.seen["several.bus_gb_s"], case.expected.gpu_count
    if found is None:
        return _no_card(case) if case.seen["several.sums_wrong"] is None else unknown("not all cards measured a bandwidth")
    name = case.seen.get("gpu.name") or ""
    known = next((speed for (card, cards), speed in BUS_GB_S.items() if cards == count and card in name), None)
    if known is None:
        return ok(f"{found:.3g} GB/s of bus bandwidth; nothing is known of {count} such cards to compare it with", None, found)
    if found < BUS_WARNS.value * known:
        cause = "a link between two cards is down or slow, or peer-to-peer copies are switched off"
        return warned(f"{found:.3g} GB/s of bus bandwidth, {known:g} is usual", known, found, cause, "look at nvidia-smi topo -m, nvlink -s", BUS_WARNS)
    return ok(f"{found:.3g} GB/s of bus bandwidth, {known:g} is usual", known, found)


JUDGES: dict[str, Callable[[Case], Judgement]] = {"C01": _alone, "C02": _sums, "C03": _bandwidth}
