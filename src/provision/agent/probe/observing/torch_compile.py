"""Looks for the compiler that torch.compile calls, and compiles a small function with it."""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from collections.abc import Sequence
from typing import Any

from ..context import ObserverContext
from ..model import Readings
from .tensors import device_of, normal_tensor, seeded_generator

CPU_COMPILERS = ("g++", "clang++")
CUDA_COMPILERS = ("gcc", "clang", "cc", *CPU_COMPILERS)
"""Inductor compiles C++ for a CPU (torch._inductor.cpp_builder); on a card Triton builds its
launchers with a C compiler (triton.runtime.build).
"""


def _tools(context: ObserverContext) -> Readings:
    card = context.expected.gpu_type is not None
    named = [
        context.environ.get(name, "").partition(" ")[0]
        for name in (("CC", "CXX") if card else ("CXX",))
    ]
    commands = [command for command in named if command] + list(
        CUDA_COMPILERS if card else CPU_COMPILERS
    )
    compiler, headers = find_compiler(
        commands, context.environ.get("PATH"), sysconfig.get_path("include")
    )
    return {"compile.compiler": compiler, "compile.headers": headers}


def find_compiler(
    commands: Sequence[str], path: str | None, include: str
) -> tuple[str | None, bool]:
    """Return the first compiler found, None for none, and whether Python.h is in `include`."""
    compiler = next(
        (os.path.basename(command) for command in commands if shutil.which(command, path=path)),
        None,
    )
    return compiler, os.path.exists(os.path.join(include, "Python.h"))


def _compiled(context: ObserverContext) -> Readings:
    # A cache that an earlier run filled would hide that nothing can be compiled now.
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        os.environ[name] = str(context.scratch / name.lower())
    began = time.perf_counter()
    error = compiled_error(device_of(context))
    return {"compile.error": error, "compile.compile_s": time.perf_counter() - began}


def compiled_error(device: str) -> float:
    """Return the relative error of a compiled function: a product, a norm and an activation."""
    import torch

    generator = seeded_generator()
    inputs, weights = (normal_tensor(shape, generator).to(device) for shape in ((32, 64), (64, 64)))

    def written(x: Any, w: Any) -> Any:
        return torch.nn.functional.gelu(torch.nn.functional.layer_norm(x @ w, (64,))).sum(-1)

    plain = written(inputs, weights)
    return float((torch.compile(written)(inputs, weights) - plain).norm() / plain.norm())


OBSERVERS = {"K01": _tools, "K02": _compiled}
