"""Trains a tiny model with jax or Keras twice, and looks at losses, weights and types."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..context import ObserverContext
from ..model import Proof, Readings
from ..proofs.frameworks import (
    FrameworkOutcome,
    FrameworkRun,
    arrays_hash,
    prepare_framework,
)
from ..proofs.recipe import scratch_folder

_ENDS = 5
STRAIGHT_RUN, FINAL_WEIGHTS = "framework", "final.npz"


def build_framework_run(context: ObserverContext, name: str) -> FrameworkRun:
    """Return a run of the declared framework, with a separate folder."""
    prepare_framework(os.environ, context.expected, deterministic=True)
    build: Callable[[Any, Path], FrameworkRun] = proof_module(context).Run
    return build(context.expected, scratch_folder(context.scratch, name))


def proof_module(context: ObserverContext) -> Any:
    """Return the module with the proof of the declared framework."""
    is_jax = context.expected.proof is Proof.JAX
    return import_module("..proofs.jax_loop" if is_jax else "..proofs.keras_fit", __package__)


def _learns(context: ObserverContext) -> Readings:
    began = time.perf_counter()
    outcome = build_framework_run(context, STRAIGHT_RUN).train()
    context.memo["framework"] = outcome
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
    return {"framework.repeat_sha": arrays_hash(outcome.weights)}


OBSERVERS = {
    "J05": _learns,
    "J06": _precision,
    "J07": _repeats,
}
