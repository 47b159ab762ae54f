"""Checks that the device computes right."""

from __future__ import annotations

from ..values import Check, Need, Threshold

FP32_ERROR = Threshold(2e-6, "relative Frobenius error", "fp32 measures 3e-7 for any K from 256 to 4096; tf32 would measure 2.9e-4")
BF16_ERROR = Threshold(4.5e-3, "relative Frobenius error", "rounding the output gives 1.66e-3, bf16 split-K reduction 4.0e-3")
TF32_ERROR = Threshold(1e-3, "relative Frobenius error", "tf32 measures 2.9e-4 against unrounded float64")


_TORCH = (Need.TORCH,)

CHECKS: tuple[Check, ...] = (
    Check(
        "N01",
        "numerics",
        "matrix products are right",
        "torch",
        ("torch.version", "torch.cpu_capability", "gpu.name", "numerics.fp32_error", "numerics.bf16_error"),
        needs=_TORCH,
        after=("T01",),
        threshold=FP32_ERROR,
    ),
    Check(
        "N02",
        "numerics",
        "fp32 is fp32",
        "torch",
        ("env.NVIDIA_TF32_OVERRIDE", "env.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "numerics.fp32_error"),
        needs=_TORCH,
        after=("T01", "N01"),
        threshold=FP32_ERROR,
    ),
    Check("N06", "numerics", "same product twice", "torch", ("torch.version", "torch.cpu_capability", "gpu.name"), needs=_TORCH, after=("T01",)),
)
