"""`python -m benchmarks.throughput`: the speed that the probe measures beside what a bare torch
loop measures, on the same device, taking turns; each card.

Needs an interpreter with torch, so it is no row of the table: exit 1 when they differ by more
than 5 %, 0 when they do not or when there is no GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from provision.agent.probe.observing.speed import flop_count, median, multiplied_tflops

BOUND = 0.05
_TURNS, _WARM, _ROUNDS = 5, 3, 10


def main(words: list[str]) -> int:
    """Measure in turns, print both and their ratio, and return the exit code."""
    asked = _parser().parse_args(words)
    try:
        import torch
    except ModuleNotFoundError:
        sys.stderr.write(
            "gpu-throughput needs torch: run it with the Python of an environment that has it\n"
        )
        return 2
    if asked.device == "cuda" and not torch.cuda.is_available():
        sys.stdout.write(
            "gpu-throughput was not measured: no GPU is here (--device cpu --size 1024 "
            "shows that it works)\n"
        )
        return 0
    if asked.device == "cpu":
        return 0 if _holds(asked.format, "cpu", asked.size, "cpu") else 1
    held = []
    for index in range(torch.cuda.device_count()):
        with torch.cuda.device(index):
            held.append(_holds(asked.format, "cuda", asked.size, f"cuda:{index}"))
    return 0 if all(held) else 1


def _holds(name: str, device: str, size: int, where: str) -> bool:
    pairs = [
        (multiplied_tflops(name, device, size), bare_tflops(name, device, size))
        for _ in range(_TURNS)
    ]
    ours, bare = (median([pair[side] for pair in pairs]) for side in (0, 1))
    holds = abs(ours / bare - 1) <= BOUND
    words_of = (
        f"gpu-throughput  {name} {size}^3 on {where}  probe {ours:.4g} TFLOP/s  bare loop "
        f"{bare:.4g} TFLOP/s"
    )
    sys.stdout.write(
        f"{words_of}  ratio {ours / bare:.3f}  bound {1 - BOUND:.2f}-{1 + BOUND:.2f}  "
        f"holds {'yes' if holds else 'NO'}\n"
    )
    return holds


def bare_tflops(name: str, device: str, size: int) -> float:
    """Return the TFLOP/s of the loop that anybody would write: products in a row between two looks
    at the clock, on the same kind of random numbers.
    """
    import torch

    kind: Any = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[name]
    left, right = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
    for _ in range(_WARM):
        left @ right
    _settle(device)
    began = time.perf_counter()
    for _ in range(_ROUNDS):
        left @ right
    _settle(device)
    return flop_count(size) * _ROUNDS / (time.perf_counter() - began) / 1e12


def _settle(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--format", choices=["bf16", "fp16", "fp32"], default="bf16")
    parser.add_argument("--size", type=int, default=8192)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
