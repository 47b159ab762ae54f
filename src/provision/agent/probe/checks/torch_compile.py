"""Checks of torch.compile and of the compiler it calls."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold

COMPILED_ERROR = Threshold(
    1e-4,
    "relative error",
    "own choice: fusing changes the order of sums, which measures 1e-7 in fp32",
)

_TOOLS = ("compile.compiler", "compile.headers")

_compile = partial(
    Check,
    group="compile",
    stage="compile",
    needs=(Need.TORCH, Need.COMPILE),
    required_by="training.torch_compile",
    quiet=True,
)
CHECKS = (
    _compile("K01", title="C++ compiler and Python headers", causes=_TOOLS),
    _compile(
        "K02",
        title="compiled function",
        causes=(*_TOOLS, "torch.version", "torch.cuda", "torch.libraries"),
        threshold=COMPILED_ERROR,
    ),
)
