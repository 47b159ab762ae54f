"""Judges the checkpoint of the training run, and the run that resumes from it."""

from __future__ import annotations

from ..model import Judgement, Proof
from ..proofs.recipe import Recipe
from .judgement import JudgeInput, fails, format_list, passes

_RECIPE = Recipe()


def judge_checkpoint(given: JudgeInput) -> Judgement:
    """Return whether the checkpoint has all its files, and whether they load."""
    missing, broken = (
        given["train.checkpoint_missing"],
        given["train.checkpoint_broken"],
    )
    if not missing and not broken:
        return passes("the checkpoint has all its files and they load", "complete", "complete")
    message = [f"{name} is missing" for name in missing] + broken
    return fails(
        f"the checkpoint is not complete: {format_list(message)}",
        [],
        message,
        "the disk filled up, or a version no longer writes the file",
        "free disk space; lock transformers, accelerate and safetensors together",
    )


def judge_resume(given: JudgeInput) -> Judgement:
    """Return whether a run that continues from the checkpoint ends as the whole run."""
    straight, resumed, steps = (
        given["train.weights_sha"],
        given["resume.weights_sha"],
        given["resume.steps"],
    )
    made, left = given["resume.made"], _RECIPE.steps - _RECIPE.save_at
    if resumed == straight and steps == _RECIPE.steps and made == left:
        return passes(
            f"{given.expected.proof.value}: from the checkpoint at step {_RECIPE.save_at} a "
            "fresh process reaches the same weights",
            straight,
            resumed,
        )
    if made != left:
        return fails(
            f"the resumed run made {made} steps of its own: from the checkpoint at step "
            f"{_RECIPE.save_at} there were {left} to make",
            left,
            made,
            "the checkpoint was not used, or its trainer_state.json was not: the run would "
            "begin again without an error",
            "lock transformers and accelerate together; take out what changes them at "
            "their import (sitecustomize, .pth files)",
        )
    files = (
        "model.safetensors, optimizer.pt, scheduler.pt or rng_state.pth"
        if (given.expected.proof is Proof.HF_TRAINER)
        else "model.pt, optimizer.pt or rng_state.pt"
    )
    return fails(
        f"a resumed run ends at other weights than the straight one (step {steps})",
        straight,
        resumed,
        f"a part of the state was not saved or not restored ({files}); the run would go on "
        "without an error",
        "check that the whole checkpoint folder is kept, and lock transformers and "
        "accelerate together",
    )
