"""Trains the tiny model twice and looks at losses, weights, types, options and the checkpoint."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..model import Proof
from ..proofs.recipe import (
    Recipe,
    TrainingOutcome,
    TrainingRun,
    checkpoint_folder,
    prepare_environment,
    scratch_folder,
)
from . import Observer, ObserverContext

_ENDS = 5
STRAIGHT_RUN = "straight"


def build_run(bench: ObserverContext, name: str, recipe: Recipe) -> TrainingRun:
    """A run of the declared framework, ready to train in its own folder below the scratch folder."""  # noqa: E501
    prepare_environment(os.environ, bench.expected, bench.scratch)
    build: Callable[[Recipe, Path, dict[str, Any]], TrainingRun] = _proof_module(bench).Build
    return build(recipe, scratch_folder(bench.scratch, name), bench.expected.training.arguments)


def _imports_and_arguments(bench: ObserverContext) -> dict[str, Any]:
    recipe = bench.memo["recipe"] = Recipe.of(bench.expected)
    built = bench.memo["built"] = build_run(bench, STRAIGHT_RUN, recipe)
    return {**built.notes, "train.device": built.placement()["train.device"]}


def _learns(bench: ObserverContext) -> dict[str, Any]:
    began = time.perf_counter()
    outcome: TrainingOutcome = bench.memo["built"].train()
    bench.memo["outcome"] = outcome
    return {
        "train.loss_first": _mean(outcome.losses[:_ENDS]),
        "train.loss_last": _mean(outcome.losses[-_ENDS:]),
        "train.steps": outcome.steps,
        "train.still": list(outcome.still),
        "train.weights_sha": outcome.weights_sha,
        "train.run_s": time.perf_counter() - began,
    }


def _precision(bench: ObserverContext) -> dict[str, Any]:
    outcome: TrainingOutcome = bench.memo["outcome"]
    error = outcome.product_error
    return {
        "train.dtype": outcome.dtype,
        **({} if error is None else {"train.product_error": error}),
    }


def _placement(bench: ObserverContext) -> dict[str, Any]:
    found: dict[str, Any] = bench.memo["built"].placement()
    return found


def _checkpoint(bench: ObserverContext) -> dict[str, Any]:
    folder = checkpoint_folder(bench.scratch / STRAIGHT_RUN, bench.memo["recipe"])
    wanted: tuple[str, ...] = _proof_module(bench).CHECKPOINT_FILES
    missing = [name for name in wanted if not (folder / name).is_file()]
    broken = [
        f"{name}: {problem}"
        for name in wanted
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

            # The files were written a moment ago by this process; training_args.bin holds a pickled
            # dataclass.
            torch.load(file, map_location="cpu", weights_only=False)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return ""


def _options(bench: ObserverContext) -> dict[str, Any]:
    built: TrainingRun = bench.memo["built"]
    built.record_effective_options()
    return {"train.options": {name: list(pair) for name, pair in built.options.items()}}


def _repeats(bench: ObserverContext) -> dict[str, Any]:
    return {
        "train.repeat_sha": build_run(bench, "repeat", bench.memo["recipe"]).train().weights_sha
    }


def _data_round_trip(bench: ObserverContext) -> dict[str, Any]:
    from ..proofs.data import round_trip

    return {
        f"train.{name}": value
        for name, value in round_trip(
            scratch_folder(bench.scratch, "data"), bench.expected.packages
        ).items()
    }


def _adapter(bench: ObserverContext) -> dict[str, Any]:
    from ..proofs.adapter import train_adapter

    if bench.expected.training.method == "qlora" and bench.memo["recipe"].device != "cuda":
        return {}
    found = train_adapter(
        bench.memo["recipe"],
        scratch_folder(bench.scratch, "adapter"),
        quantized=bench.expected.training.method == "qlora",
    )
    return {f"train.adapter_{name}": value for name, value in found.items()}


def _proof_module(bench: ObserverContext) -> Any:
    return import_module(
        "..proofs.trainer" if bench.expected.proof is Proof.HF_TRAINER else "..proofs.loop",
        __package__,
    )


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values) if values else float("nan")


OBSERVERS: dict[str, Observer] = {
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
