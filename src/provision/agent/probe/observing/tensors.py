"""Where numbers are computed, in which type, and how far off they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import ObserverContext

SEED = 20


def device_of(bench: ObserverContext) -> str:
    """Return the device that numbers are computed on: "cuda" where an NVIDIA card is declared and
    there, else "cpu".
    """
    import torch

    return (
        "cuda"
        if bench.expected.gpu_type not in (None, "mps") and torch.cuda.is_available()
        else "cpu"
    )


def dtype_of(precision: str, device: str) -> Any:
    """Return the torch type in which a training of this precision computes on this device; fp16 is
    for cards only.
    """
    import torch

    short = {
        "bf16": torch.bfloat16,
        "fp8": torch.bfloat16,
        **({"fp16": torch.float16} if device != "cpu" else {}),
    }
    return short.get(precision, torch.float32)


def normal_tensor(shape: tuple[int, ...], generator: Any) -> Any:
    """Return standard normal numbers in fp32, made on the CPU so that every device computes with
    the same ones.
    """
    import torch

    return torch.randn(shape, generator=generator)


def seeded_generator(seed: int = SEED) -> Any:
    """Return a generator of the CPU's random numbers."""
    import torch

    return torch.Generator().manual_seed(seed)


def relative_errors(result: Any, truth: Any) -> tuple[float, float]:
    """Return the relative Frobenius error of a result against its float64 truth, and its worst
    element's error in root mean squares of the truth.
    """
    truth = truth.detach()
    difference = (result.detach().cpu().double() - truth).abs()
    return float(difference.norm() / truth.norm()), float(
        difference.max() / truth.pow(2).mean().sqrt()
    )


def worst_errors(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Return the largest error and the largest worst element of several results; NaN where one is
    NaN, which `max` may pass over.
    """
    sides = ([pair[side] for pair in pairs] for side in (0, 1))
    return [math.nan if any(math.isnan(one) for one in side) else max(side) for side in sides]
