"""The program of each process of a sum over cards: joins, sums, measures."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from ..model import Environ, JsonObject
from .machine_links import measure_links
from .machine_training import TASK, train_on_machines

_NUMBERS = (1 << 10, 1 << 20, 1 << 24)
"""Numbers of a sum: 4 KiB, 4 MiB and 64 MiB, because NCCL sends short, middle and long messages in
different ways (LL, LL128, Simple).
"""
STEPS = ("reached its card", "joined the others", "added up")
"""Steps of a rank in order; the last one that it noted shows where it hangs."""
_WARM, _ROUNDS = 2, 5
_PATIENCE = timedelta(seconds=50)


def run_rank(backend: str, folder: Path, sizes: Sequence[int], environ: Environ) -> None:
    """Join as one process of torchrun; write `folder`/RANK.json. `sizes` are message bytes.

    On several machines, the links between them are measured as well, and one step is trained if
    the folder has a task for it.
    """
    import torch
    from torch import distributed

    rank, ranks, local = (int(environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    device = f"cuda:{local}" if backend == "nccl" else "cpu"
    if backend == "nccl":
        torch.cuda.set_device(local)
    # The note distinguishes a card that does not answer from one that does not reach the others.
    torch.ones(1, device=device).item()
    _note(folder, rank, STEPS[0])
    distributed.init_process_group(backend, timeout=_PATIENCE)
    distributed.barrier()
    _note(folder, rank, STEPS[1])
    wrong = count_wrong_sums(rank, ranks, device)
    _note(folder, rank, STEPS[2])
    results = {
        "world": ranks,
        "wrong": wrong,
        "bus_gb_s": [bus_gb_s(size, _seconds(size, device), ranks) for size in sizes],
    }
    machines = int(environ.get("GROUP_WORLD_SIZE", "1"))
    if machines > 1:
        results["links_mb_s"] = measure_links(rank, ranks // machines, machines, device)
    (folder / f"{rank}.json").write_text(json.dumps(results), encoding="utf-8")
    if (folder / TASK).exists():
        train_on_machines(folder, rank, ranks, device)
        # Not by returning: after a failed step the others may wait for this process, and ending
        # the group waits for them.
        sys.stdout.flush()
        os._exit(0)
    distributed.destroy_process_group()


def count_wrong_sums(rank: int, ranks: int, device: str) -> int:
    """Return how many sums over all ranks are wrong; integers this small are exact in fp32."""
    import torch
    from torch import distributed

    wrong = 0
    for count in _NUMBERS:
        own = torch.arange(count, device=device, dtype=torch.float32) % 1021
        mine = own + rank
        distributed.all_reduce(mine)
        wrong += int((mine != own * ranks + ranks * (ranks - 1) // 2).sum())
    return wrong


def _note(folder: Path, rank: int, step: str) -> None:
    (folder / f"{rank}.step").write_text(step, encoding="utf-8")


def bus_gb_s(count: int, seconds: float, ranks: int) -> float:
    """Return the bus bandwidth of an all_reduce in GB/s. Source: nccl-tests, doc/PERFORMANCE.md."""
    return count / seconds * 2 * (ranks - 1) / ranks / 1e9


def _seconds(count: int, device: str) -> float:
    import torch
    from torch import distributed

    # All ranks hold the same message of ones: the sum stays finite over the few rounds, and NCCL's
    # speed does not depend on it.
    message = torch.ones(count // 4, device=device)
    measured = []
    for _ in range(_WARM + _ROUNDS):
        distributed.barrier()
        began = time.perf_counter()
        distributed.all_reduce(message)
        if device != "cpu":
            torch.cuda.synchronize()
        measured.append(time.perf_counter() - began)
    return sorted(measured[_WARM:])[_ROUNDS // 2]


def run_alone(backend: str, scratch: Path) -> int:
    """Join as the only process and return the wrong sums: the backend's library loads."""
    from torch import distributed

    device = "cuda:0" if backend == "nccl" else "cpu"
    handle, name = scratch / "alone", f"file://{scratch / 'alone'}"
    if handle.exists():
        os.unlink(handle)
    distributed.init_process_group(
        backend, init_method=name, rank=0, world_size=1, timeout=_PATIENCE
    )
    try:
        return count_wrong_sums(0, 1, device)
    finally:
        distributed.destroy_process_group()


def read_steps(folder: Path, ranks: int, first: int = 0) -> list[str | None]:
    """Return the last of `STEPS` that each rank reached; None for a rank without one."""
    files = [folder / f"{rank}.step" for rank in range(first, first + ranks)]
    return [file.read_text(encoding="utf-8") if file.exists() else None for file in files]


def read_rank_reports(folder: Path, ranks: int, first: int = 0) -> list[JsonObject]:
    """Return what the ranks wrote, in their order; those that wrote nothing are left out."""
    files = [folder / f"{rank}.json" for rank in range(first, first + ranks)]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
