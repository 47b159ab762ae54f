"""Checks of torch.compile and of the compiler it calls."""

from __future__ import annotations

from ..model import Check, Need, Threshold

COMPILED_ERROR = Threshold(
    1e-4,
    "relative error",
    "own choice: fusing changes the order of sums, which measures 1e-7 in fp32",
)

_COMPILE = (Need.TORCH, Need.COMPILE)
_TOOLS = ("compile.compiler", "compile.headers")

CHECKS: tuple[Check, ...] = (
    Check(
        "K01",
        "compile",
        "compiler and headers",
        "compile",
        _TOOLS,
        needs=_COMPILE,
        required_by="training.torch_compile",
        quiet=True,
    ),
    Check(
        "K02",
        "compile",
        "a compiled function is right",
        "compile",
        (*_TOOLS, "torch.version", "torch.cuda", "torch.libraries"),
        needs=_COMPILE,
        required_by="training.torch_compile",
        threshold=COMPILED_ERROR,
        quiet=True,
    ),
)
