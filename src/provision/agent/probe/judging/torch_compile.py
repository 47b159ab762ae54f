"""Judges torch.compile and what it needs."""

from __future__ import annotations

from ..checks.torch_compile import COMPILED_ERROR
from ..model import Judgement
from .judgement import JudgeInput, fails, is_number, passes

_INSTALL = "add g++ and python3-dev to system_packages, or write torch_compile: false"


def _tools(given: JudgeInput) -> Judgement:
    compiler, headers = given["compile.compiler"], given["compile.headers"]
    missing = [
        what for what, present in (("a compiler", compiler), ("Python.h", headers)) if not present
    ]
    if not missing:
        return passes(f"{compiler} and Python.h are there", None, compiler)
    return fails(
        f"torch.compile needs {' and '.join(missing)}, which is not here",
        "g++, Python.h",
        compiler,
        "torch.compile writes C++ or Triton code and compiles it on this machine",
        _INSTALL,
    )


def _compiled(given: JudgeInput) -> Judgement:
    error = given["compile.error"]
    if is_number(error) and error <= COMPILED_ERROR.value:
        return passes(
            "the compiled function computes what the written one does", COMPILED_ERROR.value, error
        )
    return fails(
        f"the compiled function is off by {error}",
        COMPILED_ERROR.value,
        error,
        "the compiler, Triton and this torch do not fit each other",
        "lock the triton of this torch, or write torch_compile: false",
        COMPILED_ERROR,
    )


JUDGES = {"K01": _tools, "K02": _compiled}
