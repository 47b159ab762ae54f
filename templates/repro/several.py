"""Adds up known numbers in several processes, one on each card. Exit 1 while they hang, end early, add up wrong or are slower than CASE says, 0 when not."""

import sys
import tempfile
import time

import torch
from torch import distributed, multiprocessing

CASE = {"CASE": "HERE"}
CARDS, RANKS = CASE["backend"] == "nccl", CASE["processes"]


def work(rank, meet):
    device = torch.device("cuda", rank) if CARDS else torch.device("cpu")
    distributed.init_process_group(CASE["backend"], init_method=meet, rank=rank, world_size=RANKS)
    own = torch.arange(1 << 20, device=device, dtype=torch.float32) % 1021
    mine, message, best = own + rank, torch.ones(CASE["bytes"] // 4, device=device), float("inf")
    distributed.all_reduce(mine)
    wrong = int((mine != own * RANKS + RANKS * (RANKS - 1) // 2).sum())
    for _ in range(7 if CASE["bytes"] else 0):
        began = time.perf_counter()
        distributed.all_reduce(message)
        float(message[0])  # waits for the card
        best = min(best, time.perf_counter() - began)
    speed = CASE["bytes"] / best * 2 * (RANKS - 1) / RANKS / 1e9
    print(f"process {rank} of {RANKS}: {wrong} wrong sums; bus bandwidth {speed:.3g} GB/s, at least {CASE['least_gb_s']:.3g} wanted", flush=True)
    sys.exit(wrong > 0 or speed < CASE["least_gb_s"])


if __name__ == "__main__":
    if CARDS and torch.cuda.device_count() < RANKS:
        print(f"torch sees {torch.cuda.device_count()} cards, {RANKS} are needed")
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder:
        start = multiprocessing.get_context("spawn").Process
        processes = [start(target=work, args=(rank, f"file://{folder}/meet"), daemon=True) for rank in range(RANKS)]
        until = [process.start() for process in processes] and time.monotonic() + 100
        codes = [process.join(max(1, until - time.monotonic())) or process.exitcode for process in processes]
    sys.exit(f"exit codes of the processes (None: it hangs): {codes}" if any(code != 0 for code in codes) else 0)
