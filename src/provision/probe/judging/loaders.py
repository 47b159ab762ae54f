"""Judges what arrives from DataLoader workers."""

from __future__ import annotations

from collections.abc import Callable

from ..observing.loaders import EXPECTED_SUM, LARGE_BYTES
from ..values import Judgement
from .cases import Case, bad, ok, size, skipped

_WHOLE = f"8 batches of 4 MiB whose numbers add up to {EXPECTED_SUM:,}"


def _loader(method: str) -> Callable[[Case], Judgement]:
    def judge(case: Case) -> Judgement:
        total = case.seen[f"loaders.{method}_sum"]
        if total is None:
            return skipped(f"{method} is not used on this system")
        if total == EXPECTED_SUM:
            return ok(f"2 workers by {method} delivered every number", _WHOLE)
        off = total - EXPECTED_SUM
        return bad(
            f"workers by {method} delivered wrong numbers: their sum is {abs(off):,} too {'large' if off > 0 else 'small'}",
            _WHOLE,
            f"8 batches whose numbers add up to {total:,}",
            "shared memory was damaged or cut short",
            "check /dev/shm, then try another machine",
        )

    return judge


def _large(case: Case) -> Judgement:
    right = case.seen["loaders.large_right"]
    if right is None:
        return skipped("workers of this system do not share memory through /dev/shm")
    if right:
        return ok(f"a batch of {size(LARGE_BYTES)} arrives from a worker")
    error = case.seen["_loaders.large_error"]
    return bad(
        f"a batch of {size(LARGE_BYTES)} does not arrive from a worker: {error or 'it is damaged'}",
        f"a batch of {size(LARGE_BYTES)}",
        error or "a damaged batch",
        "a batch passes through shared memory (/dev/shm), and there is too little of it",
        "start the container with a larger --shm-size, write smaller batches, or set the sharing strategy file_system (torch.multiprocessing)",
    )


JUDGES: dict[str, Callable[[Case], Judgement]] = {
    "L01": _loader("fork"),
    "L02": _loader("spawn"),
    "L03": _loader("forkserver"),
    "L04": _large,
}
