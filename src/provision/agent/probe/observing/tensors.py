"""Devices, types and errors of computations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..context import ObserverContext

SEED = 20


def device_of(context: ObserverContext) -> str:
    """Return the device of computations: "cuda" if a card is declared and present, else "cpu"."""
    import torch

    return (
        "cuda"
        if context.expected.gpu_type not in (None, "mps") and torch.cuda.is_available()
        else "cpu"
    )


def dtype_of(precision: str, device: str) -> Any:
    """Return the torch type of a precision on this device; fp16 is for cards only."""
    import torch

    short = {
        "bf16": torch.bfloat16,
        "fp8": torch.bfloat16,
        **({"fp16": torch.float16} if device != "cpu" else {}),
    }
    return short.get(precision, torch.float32)


def normal_tensor(shape: tuple[int, ...], generator: Any) -> Any:
    """Return normal fp32 numbers, made on the CPU: every device computes with the same ones."""
    import torch

    return torch.randn(shape, generator=generator)


def seeded_generator(seed: int = SEED) -> Any:
    """Return a generator of the CPU's random numbers."""
    import torch

    return torch.Generator().manual_seed(seed)


def relative_errors(result: Any, truth: Any) -> tuple[float, float]:
    """Return relative Frobenius error and worst element, in root mean squares of the truth."""
    truth = truth.detach()
    difference = (result.detach().cpu().double() - truth).abs()
    return float(difference.norm() / truth.norm()), float(
        difference.max() / truth.pow(2).mean().sqrt()
    )


def worst_errors(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Return the largest error and element of several results; NaN if one is NaN."""
    sides = ([pair[side] for pair in pairs] for side in (0, 1))
    return [math.nan if any(math.isnan(error) for error in side) else max(side) for side in sides]
