"""Adds up known numbers in several processes, one on each GPU.

Exits 1 if they hang, end early, compute wrong sums or are slower than CASE allows, else 0.
"""

import sys
import tempfile
import time

import torch
from torch import distributed, multiprocessing

CASE = {"CASE": "HERE"}
ON_CARDS, RANKS = CASE["backend"] == "nccl", CASE["processes"]
TIMEOUT_S = 100


def work(rank, address):
    device = torch.device("cuda", rank) if ON_CARDS else torch.device("cpu")
    distributed.init_process_group(
        CASE["backend"], init_method=address, rank=rank, world_size=RANKS
    )
    numbers = torch.arange(1 << 20, device=device, dtype=torch.float32) % 1021
    total = numbers + rank
    distributed.all_reduce(total)
    wrong = int((total != numbers * RANKS + RANKS * (RANKS - 1) // 2).sum())
    message, fastest = torch.ones(CASE["bytes"] // 4, device=device), float("inf")
    for _ in range(7 if CASE["bytes"] else 0):
        start = time.perf_counter()
        distributed.all_reduce(message)
        float(message[0])  # waits for the card
        fastest = min(fastest, time.perf_counter() - start)
    speed = CASE["bytes"] / fastest * 2 * (RANKS - 1) / RANKS / 1e9
    least = CASE["least_gb_s"]
    measured = f"bus bandwidth {speed:.3g} GB/s, at least {least:.3g} required"
    print(f"process {rank} of {RANKS}: {wrong} wrong sums; {measured}", flush=True)
    sys.exit(wrong > 0 or speed < least)


if __name__ == "__main__":
    if ON_CARDS and torch.cuda.device_count() < RANKS:
        print(f"torch sees {torch.cuda.device_count()} GPUs, {RANKS} are required")
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        address = f"file://{folder}/address"
        processes = [
            context.Process(target=work, args=(rank, address), daemon=True) for rank in range(RANKS)
        ]
        for process in processes:
            process.start()
        deadline = time.monotonic() + TIMEOUT_S
        for process in processes:
            process.join(max(1, deadline - time.monotonic()))
        codes = [process.exitcode for process in processes]
    if any(code != 0 for code in codes):
        sys.exit(f"exit codes of the processes (None: still running): {codes}")
