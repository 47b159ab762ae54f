"""Judges the training run: it starts, learns, repeats, resumes, and its options are in effect."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from ..checks.training import ADAPTER_LOSS_RATIO, LOSS_RATIO
from ..model import Judgement, Proof
from ..proofs.recipe import LEARNING_RATES, Recipe, optimizer_family
from .judgement import (
    JudgeInput,
    fails,
    format_list,
    has_fallen,
    is_number,
    passes,
    skipped,
    unknown,
    warns,
)

_RECIPE = Recipe()
_UNPATCHED = (
    "lock transformers and accelerate together; remove code that changes them on import "
    "(sitecustomize, .pth files)"
)
_DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_BANDS = {
    "fp32": (0.0, 5e-6),
    "tf32": (5e-5, 1.2e-3),
    "fp16": (5e-5, 1.2e-3),
    "bf16": (1.2e-3, 1e-2),
}
"""Relative Frobenius error of a product against float64 of the inputs before rounding.

It does not depend on the size: fp32 measures 1.4e-7 to 3e-7, tf32 2.9e-4, fp16 3.6e-4, bf16 2.8e-3.
"""


def _of_the_kind(error: Any, declared: str) -> bool:
    low, high = _BANDS[declared]
    return not is_number(error) or low <= error < high


def _arithmetic(error: Any) -> str:
    return next(
        (f"typical of {name}" for name, (low, high) in _BANDS.items() if low <= error < high),
        "not typical of any known format",
    )


_USE_CPU = (
    "pass use_cpu=True in your program, as the verification did, and set `use_cpu: true` "
    "under `training.arguments`"
)


def _arguments(given: JudgeInput) -> Judgement:
    strange, refused = (
        given["train.unknown_arguments"],
        given["train.refused_arguments"],
    )
    declared = sorted(given.expected.training.arguments)
    if strange:
        return fails(
            "the installed transformers does not support these `training.arguments`: "
            f"{', '.join(strange)}",
            declared,
            strange,
            "they were removed from TrainingArguments or renamed, or they are misspelled",
            "remove or rename them, or lock a transformers version that supports them",
        )
    if refused:
        return fails(
            f"transformers rejects the declared arguments: {refused}",
            declared,
            refused,
            "a value is invalid, or two arguments contradict each other",
            "correct `training.arguments`",
        )
    # Reports of earlier versions have no such reading; a declared GPU that is missing fails T02.
    if given.expected.gpu_type is None and (refused := given.get("train.refused_without_use_cpu")):
        return warns(
            f"on this machine, TrainingArguments needs `use_cpu` for this precision: {refused}",
            declared,
            refused,
            "there is no GPU, and Trainer accepts this precision on a CPU only with `use_cpu`",
            _USE_CPU,
        )
    return passes(
        f"a training run with {given.expected.proof.value} can be set up",
        declared or "none",
        declared or "none",
    )


def _learns(given: JudgeInput) -> Judgement:
    first, last, steps, still = (
        given[f"train.{name}"] for name in ("loss_first", "loss_last", "steps", "still")
    )
    observed = {"ratio": None, "first": first, "last": last, "steps": steps}
    if still:
        observed["still"] = still
    numbers = is_number(first) and is_number(last)
    if numbers and first:
        observed["ratio"] = last / first
    required = {"ratio": LOSS_RATIO.value, "steps": _RECIPE.steps}
    if numbers and steps == _RECIPE.steps and last < LOSS_RATIO.value * first:
        if still:
            return fails(
                f"the loss falls, but some weights are not updated: {format_list(still, 3)}",
                "every weight changes",
                observed,
                "they are frozen or were not passed to the optimizer; a different package "
                "version or a patch may have changed the model or Trainer",
                _UNPATCHED,
            )
        return passes(
            f"the loss falls from {first:.3g} to {last:.3g} in {steps} steps",
            required,
            observed,
        )
    if numbers and optimizer_family(given.expected.training.optimizer) not in LEARNING_RATES:
        return unknown(
            f"the loss changed from {first:.3g} to {last:.3g}, but no suitable learning rate is "
            f"known for {given.expected.training.optimizer}"
        )
    return fails(
        f"the model did not learn: the loss went from {first} to {last} in {steps} steps",
        required,
        observed,
        "gradients or optimizer steps are lost or wrong in this combination of torch, "
        "transformers and accelerate",
        "lock versions that are known to work together; compare with the report from a machine "
        "on which the model learns",
    )


def _precision(given: JudgeInput) -> Judgement:
    declared, observed = given.expected.training.precision, given["train.dtype"]
    if declared == "fp8":
        return unknown("the training run does not test fp8", declared)
    required = _DTYPES[declared]
    if declared == "tf32" and given.get("train.device") != "cuda":
        return fails(
            "tf32 is not in effect: it is available only on NVIDIA GPUs",
            declared,
            observed,
            "the training run does not use an NVIDIA GPU",
            "declare fp32 or bf16 for this target",
        )
    error = given.get("train.product_error")
    if observed == required and not _of_the_kind(error, declared):
        return fails(
            f"{declared} is not in effect: matrix products in {observed} have a relative error of "
            f"{error:.2g}, {_arithmetic(error)}",
            f"{declared}, {_BANDS[declared][0]:g} to {_BANDS[declared][1]:g}",
            error,
            "a flag, or an environment variable such as NVIDIA_TF32_OVERRIDE, selects a different "
            "precision",
            "unset the variables listed by E01, or declare the precision you want",
        )
    if observed == required:
        return passes(
            f"linear layers use {observed}" + (f", relative error {error:.2g}" if error else ""),
            required,
            observed,
        )
    cause, fix = (
        "the precision flag was accepted but ignored, as with fp16 without a GPU",
        "declare bf16 or fp32 for this target, or use a GPU that supports the declared precision",
    )
    if observed in ("bfloat16", "float16"):
        cause = (
            "another setting selects the precision, such as the variable ACCELERATE_MIXED_PRECISION"
        )
        fix = "unset that setting, or declare the precision you want"
    types = observed or "an unknown data type"
    return fails(
        f"{declared} is not in effect: linear layers use {types}",
        required,
        observed,
        cause,
        fix,
    )


def _options(given: JudgeInput) -> Judgement:
    options = sorted(given["train.options"].items())
    if not options:
        return skipped("no options declared")
    lost = [
        f"{name} is {_as_json(effective)}, but {_as_json(declared)} is declared"
        for name, (declared, effective) in options
        if not _equal(declared, effective)
    ]
    declared = {name: pair[0] for name, pair in options}
    observed = {name: pair[1] for name, pair in options}
    if not lost:
        return passes("all declared options are in effect", declared, observed)
    return fails(
        format_list(lost),
        declared,
        observed,
        "the installed version of a library ignores or overrides these options",
        "use names and values that the locked version supports",
    )


def _as_json(value: Any) -> str:
    """Return a value of an option as in JSON and in a spec."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _equal(declared: Any, effective: Any) -> bool:
    if declared == effective:
        return True
    if isinstance(declared, list) and not isinstance(effective, list):
        return False
    if not isinstance(declared, bool) and not isinstance(effective, bool):
        with suppress(TypeError, ValueError):
            return float(declared) == float(effective)
    return str(declared).lower() == str(effective).lower()


def _repeats(given: JudgeInput) -> Judgement:
    first, second = given["train.weights_sha"], given["train.repeat_sha"]
    if first == second:
        return passes("a second run gives the same weights", first, second)
    return fails(
        "a second run with the same seed gives different weights",
        first,
        second,
        "a library is nondeterministic, or ignores the seed",
        "set `full_determinism`; if the weights still differ, compare the packages with those of "
        "a machine on which both runs give the same weights",
    )


def _data(given: JudgeInput) -> Judgement:
    readings = {name: given.get(f"train.{name}") for name in ("texts", "rows")}
    observed = {name: same for name, same in readings.items() if same is not None}
    if not observed:
        return skipped("neither tokenizers nor datasets is locked")
    if all(observed.values()):
        same = "text survives encoding and decoding, dataset rows saving and loading"
        return passes(same, None, observed)
    changed = " and ".join(name for name, same in observed.items() if not same)
    return fails(
        f"{changed} changed during the round trip",
        dict.fromkeys(observed, True),
        observed,
        "the versions of tokenizers, datasets, pyarrow and numpy are not compatible with each "
        "other",
        "lock these packages together",
    )


def _placement(given: JudgeInput) -> Judgement:
    expected, required = given.expected, given.expected.device
    device, gpus, mode, wrapper = (
        given[f"train.{name}"] for name in ("device", "n_gpu", "parallel_mode", "wrapper")
    )
    observed = {"device": device, "n_gpu": gpus, "parallel_mode": mode, "wrapper": wrapper}
    if device != required:
        return fails(
            f"the training run uses {device}, but {required} is declared",
            required,
            observed,
            "the training run does not see the declared device, or an option disables it",
            "see T02; remove `use_cpu`, `no_cuda` and ACCELERATE_USE_CPU"
            if required == "cuda"
            else "hide the GPU, or declare it in the spec",
        )
    if gpus > 1 or mode == "not_distributed" or "DataParallel" in wrapper.split(", "):
        return fails(
            f"one process splits each batch across {gpus} GPUs with DataParallel",
            "one GPU per process",
            observed,
            "if one process sees several GPUs, Trainer silently uses DataParallel",
            "set `strategy: ddp`",
        )
    if expected.gpu_count > 1 and expected.training.strategy == "none":
        return warns(
            f"only one of {expected.gpu_count} GPUs was tested, but a program started with "
            "`python` would split its batches across all of them with DataParallel",
            "one GPU per process",
            observed,
            "`strategy: none` starts one process, and Trainer uses every GPU it sees",
            "set `strategy: ddp`, or set CUDA_VISIBLE_DEVICES=0 when you start the program",
        )
    strategy = expected.training.strategy
    tested = "" if strategy == "none" else f"; {strategy} is tested by R13, across machines by G05"
    return passes(f"one process on {device}, parallel mode: {mode}{tested}", required, observed)


def _adapter(given: JudgeInput) -> Judgement:
    method = given.expected.training.method
    if "train.adapter_loss" not in given.seen:
        return skipped(
            f"{method} needs a GPU, on which bitsandbytes keeps the base model in 4 bits"
        )
    names = ("loss", "parameters", "base_kept", "reloads")
    observed = {name: given[f"train.adapter_{name}"] for name in names}
    first, last = observed["loss"]
    wrong = (
        []
        if has_fallen(first, last, ADAPTER_LOSS_RATIO.value)
        else [f"does not learn (the loss went from {first} to {last})"]
    )
    wrong += [] if observed["base_kept"] else ["changes the weights of the base model"]
    wrong += [] if observed["reloads"] else ["gives different results after a reload"]
    if not wrong:
        return passes(
            f"a {method} adapter with {observed['parameters']} parameters learns, leaves the base "
            "model unchanged, and gives the same results after a reload",
            f"loss < {ADAPTER_LOSS_RATIO.value} x the first loss",
            observed,
        )
    return fails(
        f"the adapter {format_list(wrong)}",
        f"loss < {ADAPTER_LOSS_RATIO.value} x the first loss, base model unchanged",
        observed,
        "the versions of peft and transformers are not compatible",
        "lock versions of peft and transformers that are known to work together",
    )


def _checkpoint(given: JudgeInput) -> Judgement:
    missing, broken = given["train.checkpoint_missing"], given["train.checkpoint_broken"]
    if not missing and not broken:
        return passes(
            "the checkpoint has all its files, and they can be loaded", "complete", "complete"
        )
    message = [f"{name} is missing" for name in missing] + broken
    return fails(
        f"the checkpoint is incomplete: {format_list(message)}",
        [],
        message,
        "the disk is full, or an installed package version no longer writes the file",
        "free up disk space; lock transformers, accelerate and safetensors together",
    )


def _resume(given: JudgeInput) -> Judgement:
    straight, resumed, steps = (
        given["train.weights_sha"],
        given["resume.weights_sha"],
        given["resume.steps"],
    )
    made, left = given["resume.made"], _RECIPE.steps - _RECIPE.save_at
    if resumed == straight and steps == _RECIPE.steps and made == left:
        return passes(
            f"{given.expected.proof.value}: a new process that resumes from the checkpoint at step "
            f"{_RECIPE.save_at} reaches the same weights",
            straight,
            resumed,
        )
    if made != left:
        return fails(
            f"the resumed run took {made} steps instead of the {left} steps that remain after the "
            f"checkpoint at step {_RECIPE.save_at}",
            left,
            made,
            "the checkpoint, or its trainer_state.json, was not used: training would silently "
            "start over",
            _UNPATCHED,
        )
    files = (
        "model.safetensors, optimizer.pt, scheduler.pt or rng_state.pth"
        if (given.expected.proof is Proof.HF_TRAINER)
        else "model.pt, optimizer.pt or rng_state.pt"
    )
    return fails(
        f"the resumed run ends with different weights than the uninterrupted run (step {steps})",
        straight,
        resumed,
        f"part of the state was not saved or not restored ({files}); training would continue "
        "without an error",
        "check that the whole checkpoint folder is saved, and lock transformers and "
        "accelerate together",
    )


JUDGES = {
    "R01": _arguments,
    "R02": _learns,
    "R03": _precision,
    "R04": _repeats,
    "R05": _resume,
    "R06": _checkpoint,
    "R07": _options,
    "R10": _data,
    "R11": _placement,
    "R12": _adapter,
}
