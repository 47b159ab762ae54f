"""Judges torch's capabilities: libraries, number formats, flags and attention backends."""

from __future__ import annotations

import re
from typing import Any

from ..checks.numerics import ATTENTION, ONE_ELEMENT
from ..model import JsonObject, Judgement, Threshold
from .judgement import (
    JudgeInput,
    describe_unset,
    fails,
    is_number,
    passes,
    skipped,
    unknown,
    warns,
)

_PINS = {"cudnn": r"nvidia-cudnn-cu\d+", "nccl": r"nvidia-nccl-cu\d+", "triton": r"triton"}
_LEAST = {"bf16": "8.0", "tf32": "8.0", "fp8": "8.9"}


def _libraries(given: JudgeInput) -> Judgement:
    observed = given["torch.libraries"]
    locked = {
        name: version
        for name, pattern in _PINS.items()
        for package, version in given.expected.packages.items()
        if re.fullmatch(pattern, package)
    }
    if not locked:
        return skipped("the lock contains none of cuDNN, NCCL and Triton")
    wrong = [
        f"{name} {observed.get(name, 'is not found')}, locked {version}"
        for name, version in sorted(locked.items())
        if _numbers(observed.get(name, "")) != _numbers(version)
    ]
    if wrong:
        way = "check LD_PRELOAD and the loader path (`ldconfig -p`)"
        if first := given.get("env.LD_LIBRARY_PATH"):
            way = describe_unset({"LD_LIBRARY_PATH": first})
        return fails(
            "; ".join(wrong),
            locked,
            observed,
            "a different copy of the library is loaded before the locked one",
            f"{way}; recreate the environment from the lock",
        )
    return passes(
        ", ".join(f"{name} {observed[name]}" for name in sorted(locked)), locked, observed
    )


def _numbers(version: str) -> list[str]:
    """Return three numbers: the package around a library may have a fourth."""
    return version.partition("+")[0].split(".")[:3]


def _formats(given: JudgeInput) -> Judgement:
    observed, precision = given["gpu.formats"], given.expected.training.precision
    if given.expected.gpu_type == "mps":
        return skipped("Apple GPUs do not report their formats")
    if observed is None:
        return unknown("no GPU reported its formats", precision)
    if precision == "fp32" or precision in observed:
        return passes(
            f"the card supports {', '.join(['fp32', *observed])}", precision, ["fp32", *observed]
        )
    return fails(
        f"the card does not support {precision}, only {', '.join(['fp32', *observed])}",
        precision,
        observed,
        f"{precision} requires compute capability {_LEAST.get(precision, '7.0')} or higher; on "
        "older cards torch emulates bf16, which is many times slower",
        "declare `precision: fp16` or `precision: fp32`, or use a newer card",
    )


def _flags(given: JudgeInput) -> Judgement:
    changed = given["torch.flags"]
    if given.expected.training.precision == "tf32":
        changed = {name: value for name, value in changed.items() if value != "tf32"}
    if not changed:
        return passes(
            "torch uses its default flags",
            "default flags",
            "default flags",
        )
    return fails(
        "torch starts with "
        f"{', '.join(f'{name} = {value}' for name, value in sorted(changed.items()))}",
        {},
        changed,
        "an environment variable (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE), a .pth file or sitecustomize "
        "sets these "
        "flags before your program starts",
        "unset the variable, or declare `precision: tf32`",
    )


def _usable(given: JudgeInput) -> Judgement:
    usable = sorted(given["attention.errors"])
    if "math" not in usable:
        return fails(
            "the math backend cannot compute attention",
            "math",
            usable,
            "this torch build cannot compute attention in the declared precision on this device",
            "declare a different precision, or recreate the environment",
        )
    if usable == ["math"]:
        return warns(
            "no fast attention backend supports the declared precision",
            "flash, efficient or cudnn",
            usable,
            "flash attention needs fp16 or bf16 and compute capability 8.0 or higher; otherwise "
            "torch falls back to the math backend, whose memory use grows with the square of "
            "the sequence length",
            "declare `precision: bf16` or `precision: fp16` on a card that supports it",
        )
    return passes(f"usable attention backends: {', '.join(usable)}", None, usable)


def _attention(given: JudgeInput) -> Judgement:
    errors: JsonObject = given["attention.errors"]
    reference = errors.get("math")
    if reference is None:
        return unknown("the math backend, which is the reference, does not run")
    wrong = {name: pair for name, pair in errors.items() if not _near(pair, reference)}
    if not all(is_number(number) for number in reference):
        wrong["math"] = reference
    if wrong:
        name = next(iter(wrong))
        return fails(
            f"the {name} backend returns wrong results: relative error {errors[name][0]} (math "
            f"backend: {reference[0]})",
            reference,
            errors[name],
            "a kernel in this torch build or its cuDNN is faulty, or the card is faulty",
            "verify again; if the error persists, try a different torch version, then a different "
            "machine",
            ATTENTION,
        )
    source = f"{ATTENTION.value:g} {ATTENTION.unit}: {ATTENTION.source}"
    bound = Threshold(ATTENTION.value * reference[0], "relative Frobenius error", source)
    return passes(
        f"attention results agree with float64: {', '.join(sorted(errors))}",
        dict.fromkeys(errors, bound.value),
        {name: pair[0] for name, pair in sorted(errors.items())},
        bound,
    )


def _near(pair: Any, reference: Any) -> bool:
    """Return whether error and worst element are near the math backend's; NaN arrives as text."""
    if not all(is_number(number) for number in (*pair, *reference)):
        return False
    return bool(
        pair[0] <= ATTENTION.value * reference[0] and pair[1] <= ONE_ELEMENT * max(reference)
    )


JUDGES = {
    "T04": _libraries,
    "T05": _formats,
    "T06": _flags,
    "T07": _usable,
    "N04": _attention,
}
