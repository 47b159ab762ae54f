"""Measures copies, transfers, and products of random numbers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from .numerics import scaled_product
from .tensors import seeded_generator

_WARM, _ROUNDS, _COPIES, _MOVES = 3, 10, 20, 5
_GB = 1e9
_ENCODING = 128 / 130
"""Share of their transfers that PCIe 3 and later keep for data. Source: PCI-SIG, PCI Express base
specification 3.0.
"""

Product = Callable[[], Any]


def measure_times(action: Callable[[], Any], device: str, warm: int, rounds: int) -> list[float]:
    """Return the seconds of each round, by the card's clock if it has one, after `warm` rounds."""
    import torch

    for _ in range(warm):
        action()
    if device != "cuda":
        return [_by_our_clock(action) for _ in range(rounds)]
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(rounds + 1)]
    marks[0].record()
    for mark in marks[1:]:
        action()
        mark.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1000 for begin, end in pairwise(marks)]


def _by_our_clock(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def median(values: list[float]) -> float:
    """Return the middle one of the values."""
    return sorted(values)[len(values) // 2]


def random_bytes(count: int, device: str) -> Any:
    """Return random bytes: zeros are copied and multiplied faster, because fewer wires switch."""
    import torch

    generator = torch.Generator(device=device).manual_seed(20)
    return torch.randint(0, 256, (count,), dtype=torch.uint8, device=device, generator=generator)


def copied_gb_s(device: str, count: int) -> float:
    """Return GB/s of copies on the device, read plus write; the median of 20."""
    import torch

    source = random_bytes(count, device)
    target = torch.empty_like(source)
    return (
        2
        * count
        / median(measure_times(lambda: target.copy_(source), device, _WARM, _COPIES))
        / _GB
    )


def moved_gb_s(device: str, count: int, pinned: bool = True) -> tuple[float, float]:
    """Return GB/s from host memory (pinned, or by malloc) to the device and back; medians of 5."""
    import torch

    on_device = random_bytes(count, device)
    on_host = torch.empty(count, dtype=torch.uint8, pin_memory=pinned and device == "cuda")
    on_host.copy_(on_device)
    up = measure_times(lambda: on_device.copy_(on_host, non_blocking=True), device, 1, _MOVES)
    down = measure_times(lambda: on_host.copy_(on_device, non_blocking=True), device, 1, _MOVES)
    return count / median(up) / _GB, count / median(down) / _GB


def link_gb_s(root: Path, address: str) -> float | None:
    """Return GB/s of the card's PCIe link at most, one direction; None if unknown.

    An idle link is slower than its maximum.
    """
    folder = root / "sys/bus/pci/devices" / address
    try:
        speed = re.match(r"([\d.]+) GT/s", (folder / "max_link_speed").read_text())
        width = int((folder / "max_link_width").read_text())
    except (OSError, ValueError):
        return None
    # A virtual machine often writes width 0 or 255.
    return (
        float(speed.group(1)) * width * _ENCODING / 8
        if address and speed and 0 < width <= 32
        else None
    )


def flop_count(size: int) -> int:
    """Return the operations of a square product: size^3 multiplications and additions."""
    return 2 * size**3


def multiplied_tflops(name: str, device: str, size: int) -> float:
    """Return TFLOP/s of a square product in a format; the median of 10 after 3 warm-ups."""
    return tflops_of(size, measure_times(make_product(name, device, size), device, _WARM, _ROUNDS))


def tflops_of(size: int, seconds: list[float]) -> float:
    """Return the TFLOP/s of the median product of two square matrices."""
    return flop_count(size) / median(seconds) / 1e12


def make_product(name: str, device: str, size: int) -> Product:
    """Return a function that multiplies two random matrices in a format such as "fp8"."""
    import torch

    left, right = random_operands(name, device, size)
    if name == "fp8":
        scale, across = torch.tensor(1.0, device=device), right.t()
        return lambda: scaled_product(left, across, scale)
    if name == "tf32":
        return lambda: _in_tf32(left, right)
    out = torch.empty(size, size, dtype=left.dtype, device=device)
    return lambda: torch.mm(left, right, out=out)


def random_operands(name: str, device: str, size: int) -> tuple[Any, Any]:
    """Return two seeded standard normal matrices in the format's type."""
    import torch

    kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
    generator = (
        seeded_generator() if device == "cpu" else torch.Generator(device=device).manual_seed(20)
    )
    made = [
        torch.randn(size, size, device=device, generator=generator).to(
            kinds.get(name, torch.float32)
        )
        for _ in range(2)
    ]
    return made[0], made[1]


def _in_tf32(left: Any, right: Any) -> Any:
    import torch

    matmul: Any = torch.backends.cuda.matmul
    flag = "fp32_precision" if hasattr(matmul, "fp32_precision") else "allow_tf32"
    before = getattr(matmul, flag)
    setattr(matmul, flag, "tf32" if flag == "fp32_precision" else True)
    try:
        return torch.mm(left, right)
    finally:
        setattr(matmul, flag, before)
