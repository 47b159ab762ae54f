"""Continues the checkpoint of the run with jax or Keras in this fresh process."""

from __future__ import annotations

from ..context import ObserverContext
from ..model import Readings
from ..proofs.frameworks import largest_difference
from ..proofs.recipe import scratch_folder
from .framework_training import FINAL_WEIGHTS, STRAIGHT_RUN, build_framework_run, proof_module


def _resumes(context: ObserverContext) -> Readings:
    import numpy

    straight = scratch_folder(context.scratch, STRAIGHT_RUN)
    required: tuple[str, ...] = proof_module(context).CHECKPOINT_FILES
    if missing := [name for name in required if not (straight / name).is_file()]:
        return {"framework.checkpoint_missing": missing}
    outcome = build_framework_run(context, "framework-resumed").train(resume_from=straight)
    with numpy.load(straight / FINAL_WEIGHTS) as final:
        weights = {name: final[name] for name in final.files}
    return {
        "framework.checkpoint_missing": [],
        "framework.resumed_steps": outcome.steps,
        "framework.resumed_made": len(outcome.losses),
        "framework.resumed_difference": largest_difference(weights, outcome.weights),
    }


OBSERVERS = {"J08": _resumes}
