"""Observes jax or Keras: device, products, memory, speed, and a small training run."""

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
    largest_difference,
    prepare_framework,
)
from ..proofs.recipe import scratch_folder

_ENDS = 5
_STRAIGHT, _FINAL = "framework", "final.npz"
_PREALLOCATES = ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION")
_GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"


def _device(context: ObserverContext) -> Readings:
    from .array_libraries import library_of

    # As the job will find them: the probe sets its own below.
    variables = {
        name: value
        for name in (*_PREALLOCATES, _GROWTH)
        if (value := context.environ.get(name)) is not None
    }
    prepare_framework(os.environ, context.expected)
    readings = library_of(context).device()
    return {"framework.name": context.expected.backend, "_framework.set": variables, **readings}


def _products(context: ObserverContext) -> Readings:
    from .array_libraries import library_of, product_errors

    errors = product_errors(library_of(context))
    return {f"framework.{kind}_error": error for kind, error in errors.items()}


def _memory(context: ObserverContext) -> Readings:
    from .array_libraries import held_bytes, library_of

    library = library_of(context)
    if library.device()["framework.platform"] != "gpu":
        return {"framework.wanted_bytes": None, "framework.held_bytes": None}
    card = context.expected.card
    limit = library.memory_limit() or (card.memory_bytes if card else None)
    if limit is None:
        return {"framework.wanted_bytes": None, "framework.held_bytes": None}
    return {"framework.limit_bytes": limit, **held_bytes(library, limit)}


def _speed(context: ObserverContext) -> Readings:
    from .array_libraries import library_of, multiplied_tflops

    library = library_of(context)
    if library.device()["framework.platform"] != "gpu":
        return {"framework.speed_tflops": None}
    return {"framework.speed_tflops": multiplied_tflops(library)}


def _learns(context: ObserverContext) -> Readings:
    began = time.perf_counter()
    outcome = _run(context, _STRAIGHT).train()
    context.memo["framework"] = outcome
    import numpy

    folder = scratch_folder(context.scratch, _STRAIGHT)
    numpy.savez(folder / _FINAL, **outcome.weights)
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
    outcome = _run(context, "framework-repeat").train()
    return {"framework.repeat_sha": arrays_hash(outcome.weights)}


def _resumes(context: ObserverContext) -> Readings:
    import numpy

    straight = scratch_folder(context.scratch, _STRAIGHT)
    required: tuple[str, ...] = _proof_module(context).CHECKPOINT_FILES
    if missing := [name for name in required if not (straight / name).is_file()]:
        return {"framework.checkpoint_missing": missing}
    outcome = _run(context, "framework-resumed").train(resume_from=straight)
    with numpy.load(straight / _FINAL) as final:
        weights = {name: final[name] for name in final.files}
    return {
        "framework.checkpoint_missing": [],
        "framework.resumed_steps": outcome.steps,
        "framework.resumed_difference": largest_difference(weights, outcome.weights),
    }


def _run(context: ObserverContext, name: str) -> FrameworkRun:
    prepare_framework(os.environ, context.expected, deterministic=True)
    build: Callable[[Any, Path], FrameworkRun] = _proof_module(context).Run
    return build(context.expected, scratch_folder(context.scratch, name))


def _proof_module(context: ObserverContext) -> Any:
    is_jax = context.expected.proof is Proof.JAX
    return import_module("..proofs.jax_loop" if is_jax else "..proofs.keras_fit", __package__)


OBSERVERS = {
    "J01": _device,
    "J02": _products,
    "J03": _memory,
    "J04": _speed,
    "J05": _learns,
    "J06": _precision,
    "J07": _repeats,
    "J08": _resumes,
}
