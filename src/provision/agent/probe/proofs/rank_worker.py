"""The program of each process of a declared strategy: trains its share, and writes a note."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

from ..model import JsonObject
from .launch import Launch
from .recipe import Recipe, optimizer_family, scratch_folder

WEIGHTS = "weights.pt"
SAMPLES_PER_STEP = 8
"""Samples of a step over all processes; with more of them, one each."""

PATIENCE_S = 180
"""Imports of a first run without bytecode take a minute on a busy machine of two cores; the
training itself takes seconds.
"""
_FRAME = re.compile(r'File "(?:[^"/]*/)*([^"/]+)", line (\d+ in \w+)')


def shared_recipe(recipe: Recipe, launch: Launch) -> Recipe:
    """Return the recipe of one of several processes: no dropout, which differs, no workers."""
    # At a rate of 1, SGD without momentum multiplies differences of rounding; half of it still
    # learns.
    rate = (
        recipe.learning_rate / 2
        if optimizer_family(recipe.optimizer) == "sgd"
        else recipe.learning_rate
    )
    return replace(
        recipe,
        batch=max(1, SAMPLES_PER_STEP // launch.processes),
        ranks=launch.processes,
        dropout=0.0,
        workers=0,
        device=recipe.device if launch.gpus else "cpu",
        learning_rate=rate,
    )


def write_task(
    folder: Path, recipe: Recipe, module: str, extra: JsonObject, *, whole: bool
) -> Path:
    """Write the task of each process; `whole` keeps the first one's weights, if it has them all."""
    file = folder / "task.json"
    file.write_text(
        json.dumps(
            {
                "recipe": asdict(recipe),
                "module": module,
                "extra": extra,
                "whole": whole,
                "patience_s": PATIENCE_S,
            }
        ),
        encoding="utf-8",
    )
    return file


def main(task: str) -> None:
    """Train as one of several processes, and write rank-N.json with results or the error."""
    from ...core.process import die_with_parent

    die_with_parent()
    folder, rank = Path(task).parent, int(os.environ.get("RANK", "0"))
    note_file, task_document = (
        folder / f"rank-{rank}.json",
        json.loads(Path(task).read_text(encoding="utf-8")),
    )
    # Two processes that wait for each other end themselves, and say where they waited; their
    # launcher then ends too.
    stuck = open(folder / f"rank-{rank}.stack", "w", encoding="utf-8")  # noqa: SIM115
    faulthandler.dump_traceback_later(task_document["patience_s"], exit=True, file=stuck)
    try:
        _train(task_document, folder, rank, note_file)
    except BaseException as error:
        note_file.write_text(
            json.dumps({"error": f"{type(error).__name__}: {error}"}), encoding="utf-8"
        )
        raise


def stuck_frames(folder: Path) -> list[str]:
    """Return the innermost frames in which stuck processes waited."""
    stacks = [
        (file.stem, file.read_text(encoding="utf-8", errors="replace"))
        for file in sorted(folder.glob("rank-*.stack"))
    ]
    return [
        f"{name} in {':'.join(frames[0])}"
        for name, text in stacks
        if (frames := _FRAME.findall(text.split("Current thread")[-1] or text))
    ]


def _train(task: JsonObject, folder: Path, rank: int, note_file: Path) -> None:
    import torch
    import torch.distributed as group

    recipe = replace(Recipe(**task["recipe"]), rank=rank)
    if task["module"] == "loop" and recipe.ranks > 1:
        group.init_process_group("nccl" if recipe.device == "cuda" else "gloo")
        if recipe.device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    build = import_module(f".{task['module']}", __package__).Run
    built = build(recipe, scratch_folder(folder, f"run-{rank}"), {}, task["extra"])
    outcome = built.train()
    if task["whole"] and rank == 0:
        torch.save(
            {name: tensor.detach().cpu() for name, tensor in built.model.state_dict().items()},
            folder / WEIGHTS,
        )
    note = {
        "rank": rank,
        "world": group.get_world_size() if group.is_initialized() else 1,
        "backend": group.get_backend() if group.is_initialized() else "",
        "losses": outcome.losses,
        "weights_sha": outcome.weights_sha if task["whole"] else "",
        "device": str(next(built.model.parameters()).device),
        **{
            name.removeprefix("train."): value
            for name, value in built.placement().items()
            if name != "train.device"
        },
    }
    if group.is_initialized():
        group.barrier()
    note_file.write_text(json.dumps(note), encoding="utf-8")
    # Not by returning: taking a process group apart was seen to hang in about one of four runs on a
    # busy machine (gloo, torch 2.13.0), with all work done.
    sys.stdout.flush()
    os._exit(0)
