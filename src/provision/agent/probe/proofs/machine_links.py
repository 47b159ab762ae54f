"""Measures the links between the machines of a job: each pair of a ring alone.

An all-reduce is as slow as the slowest link, and does not show which one that is.
"""

from __future__ import annotations

import time

_BYTES = {"cpu": 1 << 21, "cuda": 1 << 26}
_ROUNDS = 3


def list_links(machines: int) -> list[tuple[int, int]]:
    """Return the pairs of a ring; two machines have one link."""
    if machines < 3:
        return [(0, 1)][: machines - 1]
    return [(machine, (machine + 1) % machines) for machine in range(machines)]


def measure_links(rank: int, ranks_per_machine: int, machines: int, device: str) -> list[float]:
    """Return MB/s of each link, the best of three rounds, on every rank.

    All ranks take part; the first one of each machine sends. What one machine sent returns from
    the other.
    """
    import torch
    from torch import distributed

    links = list_links(machines)
    size = _BYTES[device.partition(":")[0]]
    message = torch.ones(size // 4, device=device)
    measured = torch.zeros(len(links), device=device, dtype=torch.float32)
    for number, pair in enumerate(links):
        first, second = (machine * ranks_per_machine for machine in pair)
        for _ in range(_ROUNDS):
            distributed.barrier()
            began = time.perf_counter()
            if rank == first:
                distributed.send(message, second)
                distributed.recv(message, second)
            elif rank == second:
                distributed.recv(message, first)
                distributed.send(message, first)
            if device != "cpu":
                torch.cuda.synchronize()
            speed = 2 * size / (time.perf_counter() - began) / 1e6
            if rank == first:
                measured[number] = max(speed, float(measured[number]))
    distributed.all_reduce(measured)
    return [float(speed) for speed in measured]
