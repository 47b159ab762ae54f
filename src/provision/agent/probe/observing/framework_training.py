"""Trains a tiny model with jax or Keras twice, and looks at losses, weights and types."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..context import ObserverContext
from ..instructions import TENSORFLOW
from ..model import Proof, Readings
from ..proofs.frameworks import (
    SAVE_AT,
    FrameworkOutcome,
    FrameworkRun,
    arrays_hash,
    largest_difference,
    prepare_framework,
    require_backend_instructions,
)
from ..proofs.recipe import scratch_folder

_ENDS = 5
STRAIGHT_RUN, FINAL_WEIGHTS = "framework", "final.npz"


def build_framework_run(context: ObserverContext, name: str) -> FrameworkRun:
    """Return a run of the declared framework, with a separate folder."""
    require_backend_instructions(context.expected, context.root)
    prepare_framework(os.environ, context.expected, deterministic=True)
    build: Callable[[Any, Path], FrameworkRun] = proof_module(context).Run
    return build(context.expected, scratch_folder(context.scratch, name))


def proof_module(context: ObserverContext) -> Any:
    """Return the module with the proof of the declared framework."""
    is_jax = context.expected.proof is Proof.JAX
    return import_module("..proofs.jax_loop" if is_jax else "..proofs.keras_fit", __package__)


def _learns(context: ObserverContext) -> Readings:
    began = time.perf_counter()
    run = build_framework_run(context, STRAIGHT_RUN)
    outcome = run.train()
    context.memo |= {"framework": outcome, "framework-run": run}
    import numpy

    folder = scratch_folder(context.scratch, STRAIGHT_RUN)
    numpy.savez(folder / FINAL_WEIGHTS, **outcome.weights)
    return {
        "framework.loss_first": sum(outcome.losses[:_ENDS]) / _ENDS,
        "framework.loss_last": sum(outcome.losses[-_ENDS:]) / _ENDS,
        "framework.steps": outcome.steps,
        "framework.trained_on": outcome.platform,
        "framework.weights_sha": arrays_hash(outcome.weights),
        "framework.run_s": time.perf_counter() - began,
    }


def _precision(context: ObserverContext) -> Readings:
    outcome: FrameworkOutcome = context.memo["framework"]
    return {"framework.dtype": outcome.dtype}


def _repeats(context: ObserverContext) -> Readings:
    outcome = build_framework_run(context, "framework-repeat").train()
    return {
        "framework.repeat_sha": arrays_hash(outcome.weights),
        "framework.determinism": outcome.determinism,
    }


def _data(context: ObserverContext) -> Readings:
    """Train to the checkpoint's step with workers of a PyDataset, and again with tf.data.

    Later steps would show little: the model has learned, and all batches move its weights alike.
    """
    from ..proofs.keras_data import WorkerMeeting, make_dataset, make_pipeline

    workers = max(context.expected.training.dataloader_workers, 2)
    has_pipeline = not TENSORFLOW.isdisjoint(context.expected.packages)
    meeting = WorkerMeeting()
    by_workers = _difference_with(
        context, lambda first, last: make_dataset(first, last, workers, meeting)
    )
    return {
        "framework.data_workers": workers,
        "framework.workers_met": meeting.has_happened,
        "framework.workers_difference": by_workers,
        "framework.has_pipeline": has_pipeline,
        "framework.pipeline_difference": _difference_with(context, make_pipeline)
        if has_pipeline
        else None,
    }


def _difference_with(context: ObserverContext, feed: Callable[[int, int], Any]) -> float | None:
    from ..proofs.keras_fit import KerasRun

    straight, run = context.memo["framework-run"], build_framework_run(context, "framework-data")
    assert isinstance(straight, KerasRun)
    assert isinstance(run, KerasRun)
    run.build_losses()
    run.fit(0, SAVE_AT, feed)
    return largest_difference(straight.halfway, run.weights())


OBSERVERS = {
    "J05": _learns,
    "J06": _precision,
    "J07": _repeats,
    "J09": _data,
}
