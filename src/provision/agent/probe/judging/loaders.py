"""Judges what arrives from DataLoader workers."""

from __future__ import annotations

from ..byte_sizes import format_bytes
from ..model import Judgement
from ..observing.loaders import EXPECTED_SUM, prefetched_bytes
from .judgement import Judge, JudgeInput, fails, passes, skipped, warns

_WHOLE = f"8 batches of 4 MiB with the sum {EXPECTED_SUM:,}"


def _loader(method: str) -> Judge:
    def judge(given: JudgeInput) -> Judgement:
        total = given[f"loaders.{method}_sum"]
        if total is None:
            return skipped(f"{method} is not available on this system")
        if total == EXPECTED_SUM:
            return passes(
                f"2 workers returned all batches (start method: {method})", _WHOLE, _WHOLE
            )
        off = total - EXPECTED_SUM
        return fails(
            f"workers started with {method} returned wrong batches: their sum is {abs(off):,} "
            f"too {'large' if off > 0 else 'small'}",
            _WHOLE,
            f"8 batches with a sum of {total:,}",
            "shared memory was corrupted or truncated",
            "check /dev/shm, then try another machine",
        )

    return judge


def _large(given: JudgeInput) -> Judgement:
    right = given["loaders.large_right"]
    if right is None:
        return skipped("DataLoader workers do not use /dev/shm on this system")
    training = given.expected.training
    count = prefetched_bytes(
        training.dataloader_workers, training.batch_size, training.sequence_length
    )
    declared = training.batch_size is not None and training.sequence_length is not None
    what = f"a batch of {format_bytes(count)}"
    if declared:
        what += (
            f" ({training.dataloader_workers} workers prefetching batches of "
            f"{training.batch_size} x {training.sequence_length} tokens)"
        )
    if right:
        return passes(f"{what} was received from a worker", what, what)
    error = given["_loaders.large_error"]
    # Without a declared batch the size is our choice: smaller batches may work.
    say = fails if declared or not error else warns
    return say(
        f"{what} did not arrive from a worker: {error or 'it is corrupted'}",
        what,
        error or "a corrupted batch",
        "batches are passed through shared memory (/dev/shm), which is too small for them",
        "start the container with a larger --shm-size, use smaller batches, or set the "
        "sharing strategy file_system (torch.multiprocessing)",
    )


JUDGES = {
    "L01": _loader("fork"),
    "L02": _loader("spawn"),
    "L03": _loader("forkserver"),
    "L04": _large,
}
