"""Continues the straight run's checkpoint in this fresh process."""

from __future__ import annotations

import time

from ..context import ObserverContext
from ..model import Readings
from ..proofs.recipe import Recipe, checkpoint_folder
from .training import STRAIGHT_RUN, build_run


def _resumes(context: ObserverContext) -> Readings:
    recipe = Recipe.of(context.expected)
    began = time.perf_counter()
    outcome = build_run(context, "resumed", recipe).train(
        resume_from=checkpoint_folder(context.scratch / STRAIGHT_RUN, recipe)
    )
    took = time.perf_counter() - began
    return {
        "resume.weights_sha": outcome.weights_sha,
        "resume.steps": outcome.steps,
        "resume.made": outcome.made,
        "resume.run_s": took,
    }


OBSERVERS = {"R05": _resumes}
