"""Checks that the device computes right."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold, Tier

FP32_ERROR = Threshold(
    2e-6,
    "relative Frobenius error",
    "fp32 measures 3e-7 for any K from 256 to 4096; tf32 would measure 2.9e-4",
)
FP16_ERROR = Threshold(5e-4, "relative Frobenius error", "rounding the output gives 2.08e-4")
BF16_ERROR = Threshold(
    4.5e-3,
    "relative Frobenius error",
    "rounding the output gives 1.66e-3; sums of split products in bf16, which N01 turns "
    "off, give 4.0e-3",
)
TF32_ERROR = Threshold(
    1e-3, "relative Frobenius error", "tf32 measures 2.9e-4 against unrounded float64"
)
CONVOLUTION = Threshold(
    5e-6,
    "relative Frobenius error",
    "the gradient of the weights measures 1.1e-6 in fp32; tf32 would measure 2.9e-4",
)
CONVOLUTION_TF32 = Threshold(
    5e-4,
    "relative Frobenius error",
    "torch lets cuDNN convolve in tf32 (cudnn.conv.fp32_precision), which measures 2.9e-4",
)
ATTENTION = Threshold(
    3,
    "times the error of the math backend",
    "own choice: flash measures 1.2 times in bf16, 1.0 times in fp32",
)
FP8_ERROR = Threshold(
    5e-3,
    "relative Frobenius error",
    "against the same e4m3 numbers in float64: rounding to bf16 gives 1.65e-3; e4m3 itself "
    "costs 3.7e-2",
)
STEPS_ERROR = Threshold(
    3.9e-6,
    "relative error",
    "three times the relative tolerance of torch.testing.assert_close for float32, 1.3e-6",
)
ONE_ELEMENT = 10.0
"""Times a bound: how far one element may be off, in root mean squares of the result. One wrong
element of a 256 x 256 result moves the norm by 4e-3 only;
rounding leaves the worst of 1e5 elements at 5 times the mean.
"""

_BUILD = ("torch.version", "torch.cpu_capability", "gpu.name")

_numerics = partial(Check, group="numerics", stage="torch", needs=(Need.TORCH,), after=("T01",))
CHECKS = (
    _numerics(
        "N01",
        title="matrix products",
        causes=(*_BUILD, "numerics.fp32_error", "numerics.bf16_error", "numerics.fp16_error"),
        threshold=FP32_ERROR,
    ),
    _numerics(
        "N02",
        title="fp32 precision",
        causes=(
            "env.NVIDIA_TF32_OVERRIDE",
            "env.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
            "numerics.fp32_error",
        ),
        after=("T01", "N01"),
        threshold=FP32_ERROR,
    ),
    _numerics(
        "N03",
        title="convolutions",
        causes=(*_BUILD, "numerics.conv_error"),
        threshold=CONVOLUTION,
    ),
    _numerics("N04", title="attention", causes=(*_BUILD, "attention.errors"), after=("T01", "T07")),
    _numerics(
        "N05",
        title="fp8 matrix products",
        causes=(*_BUILD, "gpu.formats"),
        needs=(Need.TORCH, Need.GPU),
        after=("T01", "T05"),
        threshold=FP8_ERROR,
        quiet=True,
    ),
    _numerics("N06", title="identical results when repeated", causes=_BUILD),
    _numerics("N07", title="no NaN or infinity", causes=_BUILD),
    _numerics("N08", title="seeded random numbers", causes=("torch.version", "gpu.name")),
    _numerics(
        "N09", title="softmax, norm, AdamW", causes=_BUILD, tier=Tier.DEEP, threshold=STEPS_ERROR
    ),
)
