"""Checks of two steps of the declared model, and of the pace of a model that is always the same."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold, Tier

PARAMETER_DIFFERENCE = Threshold(
    0.05,
    "of the declared parameters",
    "own choice: norms and biases, which the shape omits or adds, are below 1% of a transformer",
)
PEAK_OVER_ESTIMATE = Threshold(
    1.5,
    "x estimate and logits",
    "own choice: on CPU the peak was 1.02 to 1.30 times estimate and logits "
    "(docs/explanation/rehearsal.md); not measured on a card",
)
OVERHEAD_BYTES = 2**28
"""Bytes of kernels and the allocator in addition to the tensors, for any model: 0.08 to 0.13 GiB
were measured on CPU.
"""
LEAST_OF_ESTIMATE = 0.5
MEMORY_SHARE = Threshold(
    0.95,
    "of the memory",
    "own choice: lengths differ between batches, and torch's allocator leaves gaps",
)

_rehearsal = partial(
    Check,
    group="training",
    stage="rehearsal",
    tier=Tier.DEEP,
    needs=(Need.TORCH, Need.TRAINING),
    required_by="training.model",
)
CHECKS = (
    _rehearsal(
        "S01",
        title="two steps of the declared model",
        causes=(
            "rehearsal.out_of_memory",
            "rehearsal.model",
            "rehearsal.device",
            "package.torch",
            "package.transformers",
            "gpu.name",
        ),
        threshold=PARAMETER_DIFFERENCE,
    ),
    _rehearsal(
        "S02",
        title="peak memory against the estimate",
        causes=("rehearsal.peak_bytes", "rehearsal.model", "package.torch", "package.transformers"),
        after=("S01",),
        required_by="",
        threshold=PEAK_OVER_ESTIMATE,
    ),
    _rehearsal(
        "S03",
        title="fits in memory",
        causes=(
            "rehearsal.peak_bytes",
            "rehearsal.memory_bytes",
            "rehearsal.out_of_memory",
            "gpu.name",
            "nvml.used_bytes",
        ),
        after=("S01",),
        threshold=MEMORY_SHARE,
    ),
    _rehearsal(
        "R09",
        title="tokens per second",
        causes=(
            "pace.tokens_per_s",
            "pace.precision",
            "gpu.name",
            "nvml.reasons",
            "nvml.power_limit_mw",
            "package.torch",
        ),
        needs=(Need.TORCH, Need.GPU),
        after=("T02",),
        required_by="",
        quiet=True,
    ),
)
