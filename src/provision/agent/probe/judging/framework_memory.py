"""Judges how much memory of a GPU jax and TensorFlow take in advance."""

from __future__ import annotations

from typing import Any

from ..byte_sizes import format_bytes
from ..checks.frameworks import LIMIT_DIFFERENCE
from ..model import Judgement
from ..proofs.frameworks import MEMORY_VARIABLES
from .judgement import JudgeInput, fails, is_number, passes

_KEY = "framework.memory_env."
_JAX_SHARE = 0.75
_OFF = ("false", "False", "0")
_ALLOCATORS = ("default", "platform", "bfc", "cuda_async", "vmm")
_ON_DEMAND = "platform"
_IGNORED = "the value is not among those that the library reads"


def judge_memory_settings(given: JudgeInput) -> Judgement:
    """Return whether the variables of the declared library have an effect, and which."""
    name = given["framework.name"]
    values = {
        variable: value
        for variable in MEMORY_VARIABLES[name]
        if (value := given[f"{_KEY}{variable}"]) is not None
    }
    return _tensorflow(given, values) if name == "tensorflow" else _jax(given, values)


def _tensorflow(given: JudgeInput, values: dict[str, str]) -> Judgement:
    variable = "TF_FORCE_GPU_ALLOW_GROWTH"
    value, growth = values.get(variable), given["framework.memory_growth"]
    observed = {**values, "memory growth": growth}
    if value not in (None, "true", "false"):
        return _without_effect(variable, str(value), ("true", "false"), observed)
    # The variable takes precedence over tf.config.
    grows = value == "true" or (value is None and bool(growth) and all(growth))
    if grows:
        by = f"{variable}=true" if value else "memory growth is on"
        return passes(
            f"TensorFlow takes GPU memory as it needs it ({by})", "memory growth on", observed
        )
    return passes(
        "TensorFlow takes nearly all free GPU memory when a program first uses the GPU "
        f"({variable}={value or 'not set'}); with {variable}=true, it takes only what it needs",
        "memory growth off",
        observed,
    )


def _jax(given: JudgeInput, values: dict[str, str]) -> Judgement:
    allocator = values.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default")
    advance = values.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true") or "true"
    limit = given["framework.memory_limit_bytes"]
    observed: dict[str, Any] = {**values, "limit": limit}
    if allocator.lower() not in _ALLOCATORS:
        return _without_effect("XLA_PYTHON_CLIENT_ALLOCATOR", allocator, _ALLOCATORS, observed)
    if advance.lower() in ("false", "no", "off", "f", "n") and advance not in _OFF:
        return _without_effect("XLA_PYTHON_CLIENT_PREALLOCATE", advance, _OFF, observed)
    if problem := _share_problem(given, values, limit, observed):
        return problem
    shown = f", at most {format_bytes(limit)}" if is_number(limit) else ""
    if advance in _OFF or allocator.lower() == _ON_DEMAND:
        by = ", ".join(f"{name}={value}" for name, value in values.items())
        return passes(
            f"jax takes GPU memory as it needs it{shown} ({by})", "preallocation off", observed
        )
    share = _declared_share(values)
    return passes(
        f"jax takes {share:.0%} of the GPU memory when a program first uses the GPU{shown}; "
        "with XLA_PYTHON_CLIENT_PREALLOCATE=false, it takes only what it needs",
        "preallocation on",
        observed,
    )


def _share_problem(
    given: JudgeInput, values: dict[str, str], limit: Any, observed: dict[str, Any]
) -> Judgement | None:
    """Return why the declared share of the memory is not in effect, if so."""
    share = _declared_share(values)
    variable = next((name for name in values if name.endswith("MEM_FRACTION")), "")
    if share <= 0:
        return _without_effect(variable, values[variable], ("a share such as 0.5",), observed)
    # Other allocators report other limits, and of several cards only the smallest is known.
    is_comparable = values.get("XLA_PYTHON_CLIENT_ALLOCATOR", "bfc").lower() in ("bfc", "default")
    is_comparable = is_comparable and given.expected.gpu_count == 1
    total = given.get("gpu.vram_bytes") if is_comparable else None
    if not (is_number(limit) and is_number(total)) or (
        abs(limit / total - share) <= LIMIT_DIFFERENCE.value
    ):
        return None
    declared = f"{variable}={values[variable]}" if variable else "the default of 75%"
    return fails(
        f"jax can allocate {limit / total:.0%} of the GPU memory: {declared} is not in effect",
        share,
        observed,
        "another variable, another program on the GPU, or a MIG partition may be changing the "
        "limit",
        "unset any XLA_PYTHON_CLIENT_* variables you do not need",
        LIMIT_DIFFERENCE,
    )


def _declared_share(values: dict[str, str]) -> float:
    for name, value in values.items():
        if name.endswith("MEM_FRACTION") and value:
            try:
                return float(value)
            except ValueError:
                return 0.0
    return _JAX_SHARE


def _without_effect(
    variable: str, value: str, read: tuple[str, ...], observed: dict[str, Any]
) -> Judgement:
    return fails(
        f"{variable}={value} has no effect, or stops the program",
        list(read),
        observed,
        _IGNORED,
        f"set {variable} to {' or '.join(read)}, or remove it",
    )
