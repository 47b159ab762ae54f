"""Judges the training run: that it starts, learns, keeps its promises, repeats and resumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checks.training import LEARNS
from ..proofs.recipe import LEARNING_RATES, Recipe, family
from ..values import Judgement, Proof
from .cases import Case, bad, listed, ok, skipped, unknown

_RECIPE = Recipe()
_DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def _arguments(case: Case) -> Judgement:
    strange, refused = case.seen["train.unknown_arguments"], case.seen["train.refused_arguments"]
    declared = sorted(case.expected.training.arguments)
    if strange:
        return bad(
            f"training.arguments that the installed transformers does not know: {', '.join(strange)}",
            declared,
            strange,
            "TrainingArguments has lost or renamed these names since, or they are misspelt",
            "remove or rename them for the locked transformers, or lock the version they belong to",
        )
    if refused:
        return bad(
            f"transformers refuses the declared arguments: {refused}",
            declared,
            refused,
            "a value is invalid, or two arguments contradict each other",
            "correct training.arguments",
        )
    return ok(f"a {case.expected.proof.value} run builds", declared, declared)


def _learns(case: Case) -> Judgement:
    first, last, steps = case.seen["train.loss_first"], case.seen["train.loss_last"], case.seen["train.steps"]
    observed = {"first": first, "last": last, "steps": steps}
    numbers = isinstance(first, (int, float)) and isinstance(last, (int, float))
    if numbers and steps == _RECIPE.steps and last < LEARNS.value * first:
        return ok(f"the loss falls from {first:.3g} to {last:.3g} in {steps} steps", f"< {LEARNS.value} of the first", observed)
    if numbers and family(case.expected.training.optimizer) not in LEARNING_RATES:
        return unknown(f"the loss went from {first:.3g} to {last:.3g}, but this run has no known learning rate for {case.expected.training.optimizer}")
    return bad(
        f"the run does not learn: loss {first} to {last} after {steps} steps",
        f"< {LEARNS.value} of the first loss after {_RECIPE.steps} steps",
        observed,
        "gradients or optimizer steps are lost or wrong in this combination of torch, transformers and accelerate",
        "lock versions that are known to work together; compare with the report of a machine where it learns",
    )


def _precision(case: Case) -> Judgement:
    declared, found = case.expected.training.precision, case.seen["train.dtype"]
    if declared == "fp8":
        return unknown("the training run does not exercise fp8", declared)
    wanted = _DTYPES[declared]
    if declared == "tf32" and case.seen.get("train.device") != "cuda":
        return bad("tf32 is not in effect: it exists on NVIDIA GPUs only", declared, found, "the run is on a CPU", "declare fp32 or bf16 for this target")
    if found == wanted:
        return ok(f"linear layers compute in {found}", wanted, found)
    return bad(
        f"{declared} is not in effect: linear layers compute in {found or 'nothing that was seen'}",
        wanted,
        found,
        "the flag was accepted and ignored, as fp16 is without a GPU",
        "declare bf16 or fp32 for this target, or use a GPU that has the declared precision",
    )


def _checkpoint(case: Case) -> Judgement:
    missing, broken = case.seen["train.checkpoint_missing"], case.seen["train.checkpoint_broken"]
    if not missing and not broken:
        return ok("the checkpoint has all its files and they load", [], [])
    told = [f"{name} is missing" for name in missing] + broken
    fix = "free disk space; lock transformers, accelerate and safetensors together"
    return bad(f"the checkpoint is not complete: {listed(told)}", [], told, "the disk filled up, or a version no longer writes the file", fix)


def _options(case: Case) -> Judgement:
    options: dict[str, list[Any]] = case.seen["train.options"]
    if not options:
        return skipped("no options declared")
    lost = [f"{name} is {found!r}, declared {declared!r}" for name, (declared, found) in sorted(options.items()) if not _equal(declared, found)]
    declared = {name: pair[0] for name, pair in options.items()}
    if not lost:
        return ok("declared options are in effect", declared, {name: pair[1] for name, pair in options.items()})
    observed = {name: pair[1] for name, pair in options.items()}
    cause = "the installed version ignores or rewrites the option"
    return bad(listed(lost), declared, observed, cause, "use the name and value that the locked version knows")


def _equal(declared: Any, found: Any) -> bool:
    if declared == found:
        return True
    if isinstance(declared, list) and not isinstance(found, list):
        return False
    if isinstance(declared, bool) or isinstance(found, bool):
        return str(declared).lower() == str(found).lower()
    try:
        return float(declared) == float(found)
    except (TypeError, ValueError):
        return str(declared).lower() == str(found).lower()


def _repeats(case: Case) -> Judgement:
    first, second = case.seen["train.weights_sha"], case.seen["train.repeat_sha"]
    if first == second:
        return ok("a second run gives the same weights", first, second)
    cause = "something in the stack is nondeterministic, or the seed does not reach it"
    return bad(
        "a second run with the same seed gives other weights",
        first,
        second,
        cause,
        "set full_determinism, and compare versions with a machine where it repeats",
    )


def _resumes(case: Case) -> Judgement:
    straight, resumed, steps = case.seen["train.weights_sha"], case.seen["resume.weights_sha"], case.seen["resume.steps"]
    if resumed == straight and steps == _RECIPE.steps:
        return ok(f"{case.expected.proof.value}: from the checkpoint at step {_RECIPE.save_at} a fresh process reaches the same weights", straight, resumed)
    files = "optimizer.pt, scheduler.pt or rng_state.pth" if case.expected.proof is Proof.HF_TRAINER else "optimizer.pt or rng_state.pt"
    return bad(
        f"a resumed run ends at other weights than the straight one (step {steps})",
        straight,
        resumed,
        f"a part of the state was not saved or not restored ({files}); the run would go on without an error",
        "check that the whole checkpoint folder is kept, and lock transformers and accelerate together",
    )


JUDGES: dict[str, Callable[[Case], Judgement]] = {
    "R01": _arguments,
    "R02": _learns,
    "R03": _precision,
    "R04": _repeats,
    "R05": _resumes,
    "R06": _checkpoint,
    "R07": _options,
}
