"""RAM that loading a model takes, and disk space for its weights and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from provision.facts.fact_tables import FactTables
from provision.facts.memory import Workload, checkpoint_bytes

BYTES_PER_PARAMETER = {"full": 4, "lora": 2}
"""Bytes per parameter read into RAM: fp32 for full training, 16 bits for frozen weights."""
_COPIES = ("ddp", "deepspeed-zero2", "fsdp")
"""Strategies whose processes each load the whole model (ZeRO-3 loads in parts; FSDP on one process
only with cpu_ram_efficient_loading, off by default).
"""


class LoadedWeights(NamedTuple):
    """Weights in RAM while a model is loaded: bytes of all processes, and their number."""

    bytes: int
    bits: int
    processes: int


class DiskUsage(NamedTuple):
    """Bytes on the disk: the downloaded weights, and `kept` checkpoints of `each` bytes."""

    downloaded: int
    kept: int
    each: int
    weights_only: int
    """Bytes of a checkpoint with `save_only_model`."""

    @property
    def total(self) -> int:
        """All bytes together."""
        return self.downloaded + self.kept * self.each


def loaded_weights(work: Workload, arguments: Mapping[str, Any]) -> LoadedWeights | None:
    """Return the weights that are read into RAM before they move to a GPU.

    Args:
        work: the training.
        arguments: the further TrainingArguments.

    Returns:
        None if weights go directly to the GPU (4-bit loading, inference with device_map).
    """
    size = BYTES_PER_PARAMETER.get(work.method)
    if size is None:
        return None
    fsdp = arguments.get("fsdp_config")
    # FSDP can load in one process and send the weights to the others.
    is_sent = isinstance(fsdp, dict) and fsdp.get("cpu_ram_efficient_loading") is True
    processes = work.devices if work.strategy in _COPIES and not is_sent else 1
    return LoadedWeights(work.parameters * size * processes, 8 * size, processes)


def checkpoint_disk_usage(
    work: Workload, arguments: Mapping[str, Any], facts: FactTables
) -> DiskUsage | None:
    """Return the disk space of weights in 16 bits and of the checkpoints that Trainer keeps.

    Returns:
        None if no checkpoint is saved, or if the optimizer is unknown.
    """
    kept = _max_checkpoints(arguments)
    each = checkpoint_bytes(work, facts)
    if not kept or each is None:
        return None
    weights_only = 4 * work.parameters if work.method == "full" else 0
    if arguments.get("save_only_model") is True:
        each = weights_only
    return DiskUsage(2 * work.parameters, kept, each, weights_only)


def _max_checkpoints(arguments: Mapping[str, Any]) -> int:
    """Return the most checkpoints on the disk at a time.

    The newest is written before the oldest is deleted (Trainer, rotate_checkpoints).
    """
    if arguments.get("save_strategy") == "no":
        return 0
    limit = _positive(arguments.get("save_total_limit"))
    steps = _positive(arguments.get("max_steps"))
    every = _positive(arguments.get("save_steps"))
    counts = []
    if limit:
        counts.append(limit + 1)
    if steps and every:
        counts.append(math.ceil(steps / every))
    return min(counts, default=1)


def _positive(value: Any) -> int:
    """Return a positive integer, or 0 for any other value."""
    return value if type(value) is int and value > 0 else 0
