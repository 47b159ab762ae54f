"""Starts the declared strategy with its launcher, and compares it with one process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module
from json import dumps, loads
from pathlib import Path

from ..context import ObserverContext
from ..model import Proof, Readings
from ..own_code import own_program
from ..proofs.launch import (
    ACCELERATE_FILE,
    DEEPSPEED_FILE,
    Launch,
    accelerate_configuration,
    deepspeed_configuration,
    launch_command_by_modules,
    reason_not_testable,
    to_yaml,
)
from ..proofs.rank_worker import PATIENCE_S, WEIGHTS, shared_recipe, stuck_frames, write_task
from ..proofs.recipe import Recipe, prepare_environment, scratch_folder
from ..text_files import read_text

_PACKAGE = __name__.removesuffix(".observing.launch")
_STARTER = """import sys

sys.path.insert(0, sys.argv[1])
from {package}.proofs.rank_worker import main

main(sys.argv[2])
"""
_ENDS = 5


def _strategy(context: ObserverContext) -> Readings:
    launch = Launch.of(context.expected)
    if reason_not_testable(launch):
        return {}
    began = time.perf_counter()
    module = "trainer" if context.expected.proof is Proof.HF_TRAINER else "loop"
    recipe = shared_recipe(Recipe.of(context.expected), launch)
    folder = scratch_folder(context.scratch, "launch")
    readings = launch_readings(run_launcher(launch, recipe, module, folder, _environment(context)))
    if launch.strategy == "ddp":
        readings["launch.weights_error"] = _error(context, folder, recipe, module)
    return {
        **readings,
        "launch.by": launch.effective_launcher,
        "launch.run_s": time.perf_counter() - began,
    }


def run_launcher(
    launch: Launch, recipe: Recipe, module: str, folder: Path, environ: dict[str, str]
) -> list[Readings]:
    """Train with the declared launcher; return each process's notes. Raises RuntimeError."""
    (folder / ACCELERATE_FILE).write_text(
        to_yaml(accelerate_configuration(launch)), encoding="utf-8"
    )
    (folder / "rank.py").write_text(_STARTER.format(package=_PACKAGE), encoding="utf-8")
    task = write_task(
        folder, recipe, module, _turned_on(launch, folder), whole=launch.strategy == "ddp"
    )
    command = launch_command_by_modules(
        launch,
        sys.executable,
        (
            str(folder / "rank.py"),
            str(own_program() or Path(__file__).parents[_PACKAGE.count(".") + 2]),
            str(task),
        ),
        str(folder / ACCELERATE_FILE),
    )
    with open(folder / "launch.log", "wb") as log:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environ,
            timeout=PATIENCE_S + 30,
            check=False,
        )
    notes = [loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("rank-*.json"))]
    if stuck := stuck_frames(folder):
        raise TimeoutError(f"the processes did not end within {PATIENCE_S} s: {'; '.join(stuck)}")
    errors = [rank["error"] for rank in notes if "error" in rank]
    if errors or ended.returncode or not notes:
        # The first to fail has the reason; the others only lost it.
        raise RuntimeError(
            errors[0]
            if errors
            else f"{launch.effective_launcher} ended with {ended.returncode}: "
            f"{_last_error(folder / 'launch.log')}"
        )
    return notes


def launch_readings(ranks: list[Readings]) -> Readings:
    """Return the notes of the processes as readings."""
    losses = ranks[0]["losses"]
    return {
        "launch.ranks": len(ranks),
        "_launch.world": sorted({rank["world"] for rank in ranks}),
        "launch.backend": ", ".join(sorted({rank["backend"] for rank in ranks})),
        "launch.wrapper": ranks[0]["wrapper"],
        "launch.parallel_mode": ranks[0]["parallel_mode"],
        "launch.devices": [rank["device"] for rank in ranks],
        "launch.weights_agree": len({rank["weights_sha"] for rank in ranks}) == 1,
        "launch.loss": [sum(losses[:_ENDS]) / _ENDS, sum(losses[-_ENDS:]) / _ENDS],
    }


def _environment(context: ObserverContext) -> dict[str, str]:
    environ = dict(context.environ)
    prepare_environment(environ, context.expected, context.scratch, every_device=True)
    return environ


def _turned_on(launch: Launch, folder: Path) -> Readings:
    """The arguments that turn a strategy on where accelerate's file does not."""
    if not launch.trainer or launch.effective_launcher == "accelerate":
        return {}
    if launch.zero_stage:
        (folder / DEEPSPEED_FILE).write_text(
            dumps(deepspeed_configuration(launch)), encoding="utf-8"
        )
        return {"deepspeed": str(folder / DEEPSPEED_FILE)}
    return {"fsdp": "full_shard auto_wrap"} if launch.strategy == "fsdp" else {}


def _error(context: ObserverContext, folder: Path, recipe: Recipe, module: str) -> float:
    """Return the relative Frobenius distance of the weights from those of a single process."""
    prepare_environment(os.environ, context.expected, context.scratch)
    import torch

    alone = replace(recipe, batch=recipe.batch * recipe.ranks, ranks=1)
    built = import_module(f"..proofs.{module}", __package__).Run(
        alone, scratch_folder(folder, "alone"), {}
    )
    built.train()
    theirs = torch.load(folder / WEIGHTS, weights_only=True)
    ours = {name: tensor.detach().cpu() for name, tensor in built.model.state_dict().items()}
    apart = sum(float((ours[name].double() - theirs[name].double()).norm()) ** 2 for name in ours)
    return float(
        (apart / sum(float(tensor.double().norm()) ** 2 for tensor in ours.values())) ** 0.5
    )


def _last_error(log: Path) -> str:
    lines = [line.strip() for line in read_text(log).splitlines() if line.strip()]
    errors = [
        line
        for line in lines
        if "Error" in line and not line.startswith("torch.distributed.elastic")
    ]
    return (errors or lines or ["no output"])[-1][:500]


OBSERVERS = {"R13": _strategy}
