"""Judges the numbers that a device computes."""

from __future__ import annotations

from typing import Any

from ..checks.numerics import (
    BF16_ERROR,
    CONVOLUTION,
    CONVOLUTION_TF32,
    FP8_ERROR,
    FP16_ERROR,
    FP32_ERROR,
    ONE_ELEMENT,
    STEPS_ERROR,
    TF32_ERROR,
)
from ..model import Judgement, Threshold
from .judgement import JudgeInput, fails, is_number, passes, skipped, warns
from .per_card import judge_each_card

_SIGNATURES = (
    (3e-6, "fp32"),
    (1e-3, "tf32 or fp16"),
    (1e-2, "bf16"),
    (5e-2, "fp8 (e4m3)"),
    (1e-1, "fp8 (e5m2)"),
)
"""Upper ends of the bands in which a product's error shows its arithmetic: fp32 measures 3e-7, tf32
2.9e-4, fp16 3.6e-4, bf16 2.9e-3, e4m3 3.75e-2, e5m2 7.4e-2, for any depth from 256 to 4096,
against float64 of inputs that were not rounded.
"""
_AGAIN = "verify again; if the problem persists, reinstall torch, then try another machine"


def identify_arithmetic(error: float) -> str:
    """Return the arithmetic that a product with this relative error was computed in."""
    return next(
        (name for bound, name in _SIGNATURES if error <= bound),
        "no known format (the result is wrong)",
    )


def _products(given: JudgeInput) -> Judgement:
    card = given["numerics.device"] == "cuda"
    tf32 = given.expected.training.precision == "tf32" and card
    bounds = {
        "fp32": TF32_ERROR if tf32 else FP32_ERROR,
        "bf16": BF16_ERROR,
        **({"fp16": FP16_ERROR} if card else {}),
    }
    sizes = {"": "", **({"_large": " of size 4096 x 4096"} if card else {})}
    observed = {
        f"{name}{size}": given[f"numerics.{name}{size}_error"] for name in bounds for size in sizes
    }
    expected = {name: bound.value for name, bound in bounds.items()}
    for name, bound, size in (
        (name, bound, size) for name, bound in bounds.items() for size in sizes
    ):
        error, outside = observed[f"{name}{size}"], given[f"numerics.{name}{size}_outside"]
        # A NaN arrives as a text and is never small.
        if (
            not is_number(error)
            or not error <= bound.value
            or (outside and not (tf32 and name == "fp32"))
        ):
            return fails(
                f"{name} matrix products{sizes[size]} are wrong: relative error {error} (limit "
                f"{bound.value:g}), elements outside torch's tolerances: {outside}",
                expected,
                observed,
                "the BLAS library or the device is faulty, or an environment variable forces "
                "reduced precision",
                _AGAIN,
                bound,
            )
    return passes(f"{', '.join(bounds)} matrix products agree with float64", expected, observed)


def _signature(given: JudgeInput) -> Judgement:
    error = given["numerics.fp32_signature"]
    if given.expected.training.precision == "tf32":
        return skipped("the spec declares tf32", error)
    if is_number(error) and error <= FP32_ERROR.value:
        return passes("fp32 matrix products have fp32 accuracy", FP32_ERROR.value, error)
    message = f", typical of {identify_arithmetic(error)}" if is_number(error) else ""
    return fails(
        f"an fp32 matrix product was not computed in fp32: its relative error is {error}{message}",
        FP32_ERROR.value,
        error,
        "an environment variable forces TF32 or another lower precision (NVIDIA_TF32_OVERRIDE, "
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)",
        "unset these variables, or declare `precision: tf32`",
        FP32_ERROR,
    )


def _convolutions(given: JudgeInput) -> Judgement:
    card = given["numerics.device"] == "cuda"
    bounds = [(given["numerics.conv_error"], CONVOLUTION_TF32 if card else CONVOLUTION, "")]
    if card:
        plain = TF32_ERROR if given.expected.training.precision == "tf32" else CONVOLUTION
        bounds.append((given["numerics.conv_plain_error"], plain, " without cuDNN"))
    for errors, bound, how in bounds:
        if not _within(errors, bound):
            return fails(
                f"convolutions{how} give wrong results: {_errors(errors)} (limit {bound.value:g})",
                bound.value,
                errors,
                "a faulty cuDNN or oneDNN kernel, a faulty card, or an environment variable that "
                "forces reduced precision",
                _AGAIN,
                bound,
            )
    message = "convolutions and their gradients agree with float64"
    if not card:
        return passes(message, bounds[0][1].value, bounds[0][0][0])
    named = list(zip(("with cuDNN", "without cuDNN"), bounds, strict=True))
    return passes(
        message,
        {name: bound.value for name, (_, bound, _) in named},
        {name: errors[0] for name, (errors, _, _) in named},
        bounds[0][1],
    )


def _short_products(given: JudgeInput) -> Judgement:
    errors, refused = given["numerics.fp8_error"], given.get("numerics.fp8_refused")
    judged = fails if given.expected.training.precision == "fp8" else warns
    if refused is not None:
        return judged(
            f"no fp8 matrix product can be computed: {refused}",
            None,
            None,
            "this torch has a different function for fp8 matrix products, or none that supports "
            "this card",
            "lock a different torch if you need fp8",
        )
    if errors is None:
        return skipped("the card does not support fp8")
    if _within(errors, FP8_ERROR):
        return passes(
            "fp8 matrix products agree with float64 results for the same inputs",
            FP8_ERROR.value,
            errors[0],
        )
    return judged(
        f"fp8 matrix products are wrong: {_errors(errors)}",
        FP8_ERROR.value,
        errors,
        "a kernel or the card is faulty",
        _AGAIN,
        FP8_ERROR,
    )


def _within(errors: Any, bound: Threshold) -> bool:
    """An error and its worst element; NaN arrives as a text and is never within."""
    if not all(is_number(number) for number in errors):
        return False
    return bool(errors[0] <= bound.value and errors[1] <= ONE_ELEMENT * bound.value)


def _errors(errors: Any) -> str:
    return f"relative error {errors[0]}, largest element error {errors[1]}"


def _twice(given: JudgeInput) -> Judgement:
    if given["numerics.repeats"]:
        return passes(
            "two computations of the same matrix product are bitwise identical", True, True
        )
    return fails(
        "two computations of the same matrix product are not bitwise identical",
        True,
        False,
        "a kernel is nondeterministic, or the device is faulty",
        "set CUBLAS_WORKSPACE_CONFIG=:4096:8 before torch starts; if the problem persists, try "
        "another machine",
    )


def _finite(given: JudgeInput) -> Judgement:
    count = given["numerics.unfinite"]
    if count == 0:
        return passes("results and gradients contain no NaN or infinite values", 0, 0)
    return fails(
        f"{count} values in results or gradients are NaN or infinite",
        0,
        count,
        "a kernel leaves part of its result unwritten, or the device is faulty",
        _AGAIN,
    )


def _random(given: JudgeInput) -> Judgement:
    drawn = {key: given[key] for key in ("rng.cpu_sha", "rng.cuda_sha") if key in given.seen}
    if drawn and all(drawn.values()):
        return passes("the same seed gives the same random numbers", None, drawn)
    return fails(
        "the same seed gives different random numbers, or two seeds give the same numbers",
        None,
        drawn,
        "the generator ignores its seed, or the device is faulty",
        "reinstall torch; if the problem persists, try another machine",
    )


def _steps(given: JudgeInput) -> Judgement:
    error = given["numerics.steps_error"]
    if is_number(error) and error <= STEPS_ERROR.value:
        return passes(
            "the results of softmax, layer norm and AdamW agree with float64",
            STEPS_ERROR.value,
            error,
        )
    return fails(
        f"softmax, layer norm or AdamW is wrong: relative error {error}",
        STEPS_ERROR.value,
        error,
        "a kernel or the device is faulty",
        _AGAIN,
    )


JUDGES = {
    "N01": judge_each_card(_products),
    "N02": _signature,
    "N03": _convolutions,
    "N05": _short_products,
    "N06": judge_each_card(_twice),
    "N07": _finite,
    "N08": _random,
    "N09": _steps,
}
