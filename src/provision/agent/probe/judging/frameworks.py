"""Judges jax and Keras: the device is used, products are right, training learns and resumes."""

from __future__ import annotations

from ..byte_sizes import format_bytes
from ..checks.frameworks import DATA_DIFFERENCE, RESUMED_DIFFERENCE
from ..checks.numerics import BF16_ERROR, FP32_ERROR
from ..checks.training import LOSS_RATIO
from ..model import Judgement
from ..proofs.frameworks import SAVE_AT, STEPS
from .device import judge_product_speed
from .framework_memory import judge_memory_settings
from .judgement import (
    END_OTHER_PROGRAM,
    JudgeInput,
    fails,
    has_fallen,
    is_number,
    passes,
    unknown,
    warns,
)
from .numerics import identify_arithmetic

_CUDA_PACKAGES = {
    "jax": "replace jax in `packages` with jax[cuda13] (driver 580 or newer) or jax[cuda12]",
    "tensorflow": "replace tensorflow in `packages` with tensorflow[and-cuda]",
}
_DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_AGAIN = "lock versions that are known to work together, and run the verification again"


def _device(given: JudgeInput) -> Judgement:
    name, platform, devices = (given[f"framework.{key}"] for key in ("name", "platform", "devices"))
    expected = "cpu" if given.expected.gpu_type is None else "gpu"
    if platform != expected:
        why = given["framework.why"]
        return fails(
            f"{name} runs on the {platform}{f': {why}' if why else ''}",
            expected,
            platform,
            "its packages contain no CUDA code, or cannot find the CUDA libraries or a driver",
            _CUDA_PACKAGES[name]
            if expected == "gpu"
            else "declare the card under `gpu`, or set JAX_PLATFORMS=cpu",
        )
    if errors := given["framework.errors"]:
        return fails(
            f"{name} cannot add two numbers on {', '.join(sorted(errors))}",
            {},
            errors,
            "the build has no code for this card, or the card is faulty or in use",
            f"use a release of {name} that supports this card; see D03 and D09",
        )
    if expected == "gpu" and len(devices) < given.expected.gpu_count:
        return fails(
            f"{name} sees only {len(devices)} of {given.expected.gpu_count} GPUs",
            given.expected.gpu_count,
            len(devices),
            "CUDA_VISIBLE_DEVICES hides the others, or they do not work",
            "unset CUDA_VISIBLE_DEVICES; see D01",
        )
    shown = f"{len(devices)} x {devices[0]}" if len(devices) > 1 else devices[0]
    return passes(f"{name} {given['framework.version']} runs on {shown}", expected, platform)


def _products(given: JudgeInput) -> Judgement:
    name = given["framework.name"]
    errors = {kind: given[f"framework.{kind}_error"] for kind in ("highest", "bf16", "default")}
    bounds = {"highest": FP32_ERROR, "bf16": BF16_ERROR}
    for kind, bound in bounds.items():
        if not (is_number(errors[kind]) and errors[kind] <= bound.value):
            shown = "fp32" if kind == "highest" else kind
            return fails(
                f"{shown} matrix products in {name} are wrong: relative error {errors[kind]:.2g}",
                bound.value,
                errors,
                "an environment variable or flag selects a lower precision, or the card is faulty",
                "unset NVIDIA_TF32_OVERRIDE and XLA_FLAGS, and run the verification again",
                bound,
            )
    usual = identify_arithmetic(errors["default"])
    return passes(
        f"fp32 and bf16 matrix products in {name} agree with float64; fp32 products are "
        f"computed in {usual} unless the program sets a different precision",
        FP32_ERROR.value,
        errors,
    )


def _memory(given: JudgeInput) -> Judgement:
    wanted, held = given["framework.wanted_bytes"], given["framework.held_bytes"]
    if wanted is None:
        return unknown("the card's memory is unknown, or no card is used (see check J01)")
    limit = given["framework.limit_bytes"]
    if held < wanted:
        return fails(
            f"only {format_bytes(held)} of {format_bytes(wanted)} could be allocated",
            wanted,
            held,
            "another program or notebook is using the card's memory",
            END_OTHER_PROGRAM,
        )
    name = given["framework.name"]
    return passes(
        f"{format_bytes(held)} of the {format_bytes(limit)} that {name} may use can be allocated",
        wanted,
        held,
    )


def _speed(given: JudgeInput) -> Judgement:
    speed = given["framework.speed_tflops"]
    if speed is None:
        return unknown("no card is used, so nothing was multiplied (see check J01)")
    return judge_product_speed(given, "bf16", speed)


def _learns(given: JudgeInput) -> Judgement:
    first, last, steps, platform = (
        given[f"framework.{key}"] for key in ("loss_first", "loss_last", "steps", "trained_on")
    )
    required = "cpu" if given.expected.gpu_type is None else "gpu"
    if platform not in (required, {"gpu": "cuda"}.get(required)):
        return fails(
            f"training ran on the {platform}",
            required,
            platform,
            "the framework found no usable card and used the CPU without an error",
            "see check J01",
        )
    observed = {"first": first, "last": last, "steps": steps}
    if steps == STEPS and has_fallen(first, last, LOSS_RATIO.value):
        return passes(
            f"the loss falls from {first:.3g} to {last:.3g} in {steps} steps on the {platform}",
            {"ratio": LOSS_RATIO.value, "steps": STEPS},
            observed,
        )
    return fails(
        f"the model did not learn: loss went from {first} to {last} in {steps} steps",
        {"ratio": LOSS_RATIO.value, "steps": STEPS},
        observed,
        "with this combination of packages, gradients are wrong or missing, or optimizer steps "
        "are not applied correctly",
        _AGAIN,
    )


def _precision(given: JudgeInput) -> Judgement:
    declared, observed = given.expected.training.precision, given["framework.dtype"]
    required = _DTYPES.get(declared)
    if required is None:
        return unknown(f"the training run does not test {declared}", declared)
    if observed != required:
        return fails(
            f"{declared} is not in effect: the layers use {observed}",
            required,
            observed,
            "another setting selects the precision",
            "remove that setting, or declare the precision you want",
        )
    usual = given.get("framework.default_error")
    if declared == "fp32" and is_number(usual) and usual > FP32_ERROR.value:
        return warns(
            f"fp32 products are computed in {identify_arithmetic(usual)} unless the program "
            "sets a different precision",
            required,
            usual,
            "jax and TensorFlow use tf32 for fp32 matrix products on cards that support it",
            "declare `precision: tf32`, or set JAX_DEFAULT_MATMUL_PRECISION=highest under `env` "
            "(jax), or call tf.config.experimental.enable_tensor_float_32_execution(False)",
        )
    return passes(f"the layers use {observed}", required, observed)


def _repeats(given: JudgeInput) -> Judgement:
    first, again = given["framework.weights_sha"], given["framework.repeat_sha"]
    switches = given["framework.determinism"]
    if off := [name for name, is_on in switches.items() if not is_on]:
        return fails(
            f"{', '.join(off)} was requested but is not in effect",
            dict.fromkeys(switches, True),
            switches,
            "the installed release ignores the setting for deterministic kernels, or XLA_FLAGS "
            "overrides it",
            _AGAIN,
        )
    if first == again:
        how = f", with {', '.join(switches)} on" if switches else ""
        return passes(f"a second run gives the same weights{how}", first, again)
    return fails(
        "a second run with the same seed gives different weights",
        first,
        again,
        "a kernel in this combination of packages adds values in an order that varies between "
        "runs, or the card is faulty",
        "compare runs by their loss curves; run the verification again on another machine",
    )


def _resumes(given: JudgeInput) -> Judgement:
    if missing := given["framework.checkpoint_missing"]:
        return fails(
            f"the checkpoint is missing {', '.join(missing)}",
            "complete",
            missing,
            "the disk is full, or the process was not allowed to write",
            "see checks W03 and H06",
        )
    difference = given["framework.resumed_difference"]
    steps, made = given["framework.resumed_steps"], given["framework.resumed_made"]
    if (
        (steps, made) == (STEPS, STEPS - SAVE_AT)
        and is_number(difference)
        and difference <= RESUMED_DIFFERENCE.value
    ):
        return passes(
            "a new process that resumes from the checkpoint reaches the same weights",
            RESUMED_DIFFERENCE.value,
            difference,
        )
    return fails(
        "a new process that resumes from the checkpoint ends up with different weights",
        RESUMED_DIFFERENCE.value,
        {"difference": difference, "steps": steps, "made": made},
        "the optimizer state or the random number generator state was not saved or not loaded",
        _AGAIN,
    )


def _data(given: JudgeInput) -> Judgement:
    workers, has_pipeline = given["framework.data_workers"], given["framework.has_pipeline"]
    by_workers = f"a PyDataset with {workers} workers"
    if not given["framework.workers_met"]:
        return fails(
            f"{by_workers} produces only one batch at a time",
            "two batches at the same time",
            "one batch at a time",
            "this release of Keras starts no worker threads",
            _AGAIN,
        )
    differences = {by_workers: given["framework.workers_difference"]}
    if has_pipeline:
        differences["a tf.data pipeline"] = given["framework.pipeline_difference"]
    for source, difference in differences.items():
        if not (is_number(difference) and difference <= DATA_DIFFERENCE.value):
            return fails(
                f"training with {source} gives different weights than training with the same "
                "batches prepared one at a time",
                DATA_DIFFERENCE.value,
                differences,
                "with this combination of packages, batches are lost, repeated or reordered",
                _AGAIN,
            )
    untested = "" if has_pipeline else "; tf.data is not tested, because TensorFlow is not locked"
    return passes(
        f"training with {' and '.join(differences)} gives the same weights as training on "
        f"batches prepared one at a time{untested}",
        DATA_DIFFERENCE.value,
        differences,
    )


JUDGES = {
    "J01": _device,
    "J02": _products,
    "J03": _memory,
    "J04": _speed,
    "J05": _learns,
    "J06": _precision,
    "J07": _repeats,
    "J08": _resumes,
    "J09": _data,
    "J10": judge_memory_settings,
}
