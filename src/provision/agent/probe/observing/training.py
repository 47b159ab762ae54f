"""Trains the tiny model twice and looks at losses, weights, types, options and the checkpoint."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..context import ObserverContext
from ..model import Proof, Readings
from ..proofs.recipe import (
    Recipe,
    TrainingOutcome,
    TrainingRun,
    checkpoint_folder,
    prepare_environment,
    scratch_folder,
)

_ENDS = 5
STRAIGHT_RUN = "straight"


def build_run(context: ObserverContext, name: str, recipe: Recipe) -> TrainingRun:
    """Return a run of the declared framework, with a separate folder."""
    prepare_environment(os.environ, context.expected, context.scratch)
    build: Callable[[Recipe, Path, Readings], TrainingRun] = _proof_module(context).Run
    return build(recipe, scratch_folder(context.scratch, name), context.expected.training.arguments)


def _imports_and_arguments(context: ObserverContext) -> Readings:
    recipe = context.memo["recipe"] = Recipe.of(context.expected)
    built = context.memo["built"] = build_run(context, STRAIGHT_RUN, recipe)
    return {**built.notes, "train.device": built.placement()["train.device"]}


def _learns(context: ObserverContext) -> Readings:
    began = time.perf_counter()
    outcome: TrainingOutcome = context.memo["built"].train()
    context.memo["outcome"] = outcome
    return {
        "train.loss_first": _mean(outcome.losses[:_ENDS]),
        "train.loss_last": _mean(outcome.losses[-_ENDS:]),
        "train.steps": outcome.steps,
        "train.still": list(outcome.still),
        "train.weights_sha": outcome.weights_sha,
        "train.run_s": time.perf_counter() - began,
    }


def _precision(context: ObserverContext) -> Readings:
    outcome: TrainingOutcome = context.memo["outcome"]
    error = outcome.product_error
    return {
        "train.dtype": outcome.dtype,
        **({} if error is None else {"train.product_error": error}),
    }


def _placement(context: ObserverContext) -> Readings:
    readings: Readings = context.memo["built"].placement()
    return readings


def _checkpoint(context: ObserverContext) -> Readings:
    folder = checkpoint_folder(context.scratch / STRAIGHT_RUN, context.memo["recipe"])
    required: tuple[str, ...] = _proof_module(context).CHECKPOINT_FILES
    missing = [name for name in required if not (folder / name).is_file()]
    broken = [
        f"{name}: {problem}"
        for name in required
        if name not in missing and (problem := reload_problem(folder / name))
    ]
    return {"train.checkpoint_missing": missing, "train.checkpoint_broken": broken}


def reload_problem(file: Path) -> str:
    """Why a checkpoint file cannot be read back; empty when it can."""
    try:
        if file.suffix == ".safetensors":
            import_module("safetensors.torch").load_file(file)
        elif file.suffix == ".json":
            import json

            json.loads(file.read_text(encoding="utf-8"))
        else:
            import torch

            # This process wrote the files a moment ago; training_args.bin is a pickled dataclass.
            torch.load(file, map_location="cpu", weights_only=False)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return ""


def _options(context: ObserverContext) -> Readings:
    built: TrainingRun = context.memo["built"]
    built.record_effective_options()
    return {"train.options": {name: list(pair) for name, pair in built.options.items()}}


def _repeats(context: ObserverContext) -> Readings:
    return {
        "train.repeat_sha": build_run(context, "repeat", context.memo["recipe"]).train().weights_sha
    }


def _data_round_trip(context: ObserverContext) -> Readings:
    from ..proofs.data import round_trip

    return {
        f"train.{name}": value
        for name, value in round_trip(
            scratch_folder(context.scratch, "data"), context.expected.packages
        ).items()
    }


def _adapter(context: ObserverContext) -> Readings:
    from ..proofs.adapter import train_adapter

    if context.expected.training.method == "qlora" and context.memo["recipe"].device != "cuda":
        return {}
    results = train_adapter(
        context.memo["recipe"],
        scratch_folder(context.scratch, "adapter"),
        quantized=context.expected.training.method == "qlora",
    )
    return {f"train.adapter_{name}": value for name, value in results.items()}


def _proof_module(context: ObserverContext) -> Any:
    return import_module(
        "..proofs.trainer" if context.expected.proof is Proof.HF_TRAINER else "..proofs.loop",
        __package__,
    )


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values) if values else float("nan")


OBSERVERS = {
    "R01": _imports_and_arguments,
    "R02": _learns,
    "R03": _precision,
    "R04": _repeats,
    "R06": _checkpoint,
    "R07": _options,
    "R10": _data_round_trip,
    "R11": _placement,
    "R12": _adapter,
}
