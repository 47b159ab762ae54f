"""Judges torch.compile and what it needs."""

from __future__ import annotations

from ..checks.torch_compile import COMPILED_ERROR
from ..model import Judgement
from .judgement import JudgeInput, fails, is_number, passes

_INSTALL = "add g++ and python3-dev to `system_packages`, or set `torch_compile: false`"


def _tools(given: JudgeInput) -> Judgement:
    compiler, headers = given["compile.compiler"], given["compile.headers"]
    missing = [
        what for what, present in (("a compiler", compiler), ("Python.h", headers)) if not present
    ]
    if not missing:
        return passes(f"{compiler} and Python.h found", None, compiler)
    return fails(
        f"torch.compile needs {' and '.join(missing)}, which this machine does not have",
        "g++, Python.h",
        compiler,
        "torch.compile generates C++ or Triton code and compiles it on this machine",
        _INSTALL,
    )


def _compiled(given: JudgeInput) -> Judgement:
    error = given["compile.error"]
    if is_number(error) and error <= COMPILED_ERROR.value:
        return passes(
            "the compiled function returns the same result as the original",
            COMPILED_ERROR.value,
            error,
        )
    return fails(
        f"the compiled function has a relative error of {error}",
        COMPILED_ERROR.value,
        error,
        "torch, Triton and the compiler are not compatible",
        "lock the triton version that the locked torch requires, or set `torch_compile: false`",
        COMPILED_ERROR,
    )


JUDGES = {"K01": _tools, "K02": _compiled}
