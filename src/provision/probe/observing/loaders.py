"""Moves batches through DataLoader workers started by fork and by spawn; every number that arrives is known."""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

from . import Bench, Observer

_SAMPLES, _BATCH, _LENGTH = 64, 8, 131072
_WORKERS = 2
_PATIENCE_S = 100
EXPECTED_SUM = _LENGTH * _SAMPLES * (_SAMPLES - 1) // 2


class Blocks:
    """64 tensors of 512 KiB, each filled with its own index, so that 8 of them make a batch of 4 MiB; a class of a real module, which spawn can import."""

    def __len__(self) -> int:
        return _SAMPLES

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.full((_LENGTH,), index, dtype=torch.int32)


def _by_fork(_bench: Bench) -> dict[str, Any]:
    # macOS offers fork, but its system libraries do not survive it.
    return _loaded("fork") if sys.platform.startswith("linux") else {"loaders.fork_sum": None}


def _by_spawn(_bench: Bench) -> dict[str, Any]:
    return _loaded("spawn")


def _loaded(method: str) -> dict[str, Any]:
    from torch.utils.data import DataLoader

    context = multiprocessing.get_context(method)
    dataset: Any = Blocks()
    loader = DataLoader(dataset, batch_size=_BATCH, num_workers=_WORKERS, multiprocessing_context=context, timeout=_PATIENCE_S)
    return {f"loaders.{method}_sum": sum(int(batch.long().sum()) for batch in loader)}


OBSERVERS: dict[str, Observer] = {"L01": _by_fork, "L02": _by_spawn}
