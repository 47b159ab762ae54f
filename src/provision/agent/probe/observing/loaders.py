"""Moves known batches through DataLoader workers, with each start method."""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

from ..context import ObserverContext
from ..model import Readings

_SAMPLES, _BATCH, _LENGTH = 64, 8, 131072
_WORKERS = 2
_PATIENCE_S = 100
LARGE_BYTES = 128 * 1024**2
"""Own choice: 256 images of 224 x 224 pixels in fp32 are 154 MB; a container has 64 MiB of shared
memory by default (docker run --shm-size).
"""
_PREFETCHED, _OF_A_TOKEN = 2, 3 * 8
EXPECTED_SUM = _LENGTH * _SAMPLES * (_SAMPLES - 1) // 2


class BlockDataset:
    """64 tensors of 512 KiB, each filled with its index; 8 of them make a batch of 4 MiB.

    A class of a real module, which spawn can import.
    """

    def __len__(self) -> int:
        return _SAMPLES

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.full((_LENGTH,), index, dtype=torch.int32)


def _by_fork(_context: ObserverContext) -> Readings:
    # macOS offers fork, but its system libraries do not survive it.
    return _loaded("fork") if sys.platform.startswith("linux") else {"loaders.fork_sum": None}


def _by_forkserver(_context: ObserverContext) -> Readings:
    if "forkserver" in multiprocessing.get_all_start_methods():
        return _loaded("forkserver")
    return {"loaders.forkserver_sum": None}


def prefetched_bytes(workers: int, batch: int | None, length: int | None) -> int:
    """Return the bytes that DataLoader workers hold ready; `LARGE_BYTES` without a declared batch.

    The formula: workers x 2 (prefetch_factor) x batch_size x sequence_length x 3 (input ids,
    attention mask, labels) x 8 bytes (int64).
    """
    if batch is None or length is None:
        return LARGE_BYTES
    return workers * _PREFETCHED * batch * length * _OF_A_TOKEN


class LargeItemDataset:
    """One item of so many bytes, all of them 7."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.full((self.count,), 7, dtype=torch.uint8)


def _large(context: ObserverContext) -> Readings:
    if not sys.platform.startswith("linux"):
        return {"loaders.large_right": None}
    training = context.expected.training
    count = prefetched_bytes(
        training.dataloader_workers, training.batch_size, training.sequence_length
    )
    # In a batch, even of one, the worker allocates the shared memory itself, as in a training, and
    # reports a failure.
    loader = _loader(LargeItemDataset(count), "fork", batch_size=1, num_workers=1)
    try:
        return {
            "loaders.large_right": [
                batch.numel() == count and bool((batch == 7).all()) for batch in loader
            ]
            == [True],
            "_loaders.large_error": "",
        }
    except RuntimeError as error:
        # The worker's whole traceback is in the text; its last line is the error.
        return {
            "loaders.large_right": False,
            "_loaders.large_error": str(error).strip().splitlines()[-1],
        }


def _loaded(method: str) -> Readings:
    loader = _loader(BlockDataset(), method, batch_size=_BATCH, num_workers=_WORKERS)
    return {f"loaders.{method}_sum": sum(int(batch.long().sum()) for batch in loader)}


def _loader(dataset: Any, method: str, **sizes: int) -> Any:
    from torch.utils.data import DataLoader

    start_method = multiprocessing.get_context(method)
    return DataLoader(dataset, multiprocessing_context=start_method, timeout=_PATIENCE_S, **sizes)


OBSERVERS = {
    "L01": _by_fork,
    "L02": lambda _: _loaded("spawn"),
    "L03": _by_forkserver,
    "L04": _large,
}
