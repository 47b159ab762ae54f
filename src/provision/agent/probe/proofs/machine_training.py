"""Trains one step on all machines of a job: Trainer with ddp, and a model in shards (fsdp)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..model import JsonObject
from .recipe import Recipe, SequenceDataset, next_token_loss, scratch_folder, weights_hash

TASK = "training.json"
_BATCH = 2
_JOIN = timedelta(seconds=120)
"""Limit of the imports on the slowest machine: a first import without bytecode takes a minute on
two busy cores.
"""
_RATE = 0.5


def write_training_task(folder: Path, recipe: Recipe) -> None:
    """Request the steps of the processes that start in a folder."""
    task = replace(recipe, steps=1, save_at=2, batch=_BATCH, dropout=0.0, workers=0)
    (folder / TASK).write_text(json.dumps(asdict(task)), encoding="utf-8")


def train_on_machines(folder: Path, rank: int, ranks: int, device: str) -> None:
    """Train as one process of the group; write `folder`/training-RANK.json.

    The note has each strategy's result, or the error that ended it.
    """
    recipe = Recipe(**json.loads((folder / TASK).read_text(encoding="utf-8")))
    recipe = replace(recipe, rank=rank, ranks=ranks)
    note: JsonObject = {}
    try:
        _await_imports()
        note["ddp"] = _train_ddp(recipe, folder)
        note["fsdp"] = _train_fsdp(recipe, device)
    except Exception as error:  # noqa: BLE001
        note["error"] = f"{type(error).__name__}: {error}"[:400]
    (folder / f"training-{rank}.json").write_text(json.dumps(note), encoding="utf-8")


def read_training_notes(folder: Path, ranks: int, first: int) -> list[JsonObject]:
    """Return the notes of this machine's processes; those that wrote nothing are left out."""
    files = [folder / f"training-{rank}.json" for rank in range(first, first + ranks)]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def _await_imports() -> None:
    from torch import distributed
    from transformers import Trainer  # noqa: F401

    group = distributed.new_group(backend="gloo", timeout=_JOIN)
    distributed.barrier(group)


def _train_ddp(recipe: Recipe, folder: Path) -> JsonObject:
    """Train one step with Trainer, which wraps the model as torchrun's variables say."""
    from .trainer import TrainerRun

    own = scratch_folder(folder, f"training-{recipe.rank}")
    run = TrainerRun(recipe, own, {}, {"save_strategy": "no"})
    outcome = run.train()
    placement = run.placement()
    return {
        "loss": outcome.losses[-1],
        "weights": _gather(outcome.weights_sha),
        "wrapper": placement["train.wrapper"],
        "mode": placement["train.parallel_mode"],
    }


def _train_fsdp(recipe: Recipe, device: str) -> JsonObject:
    """Train one step of a model whose weights are in shards, by fully_shard.

    Trainer uses it for `fsdp` on GPUs; without one, accelerate replaces it by ddp. Whole weights
    are put together from all shards, so that they are the same everywhere even if a shard is
    wrong: they are compared with those of one process that trains on all samples.
    """
    import torch
    from torch import distributed

    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        return {"reason": f"torch {torch.__version__} has no fully_shard"}

    def shard(model: Any) -> None:
        mesh = init_device_mesh(device.partition(":")[0], (recipe.ranks,))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)

    first = recipe.rank * recipe.batch
    loss, sharded = _step(recipe, device, range(first, first + recipe.batch), shard)
    whole = {name: tensor.full_tensor() for name, tensor in sharded.items()}
    _, alone = _step(recipe, device, range(recipe.batch * recipe.ranks))
    apart = sum(float((whole[name] - alone[name]).double().norm()) ** 2 for name in alone)
    size = sum(float(tensor.double().norm()) ** 2 for tensor in alone.values())
    distributed.barrier()
    return {
        "loss": loss,
        "weights": _gather(weights_hash(whole)),
        "error": (apart / size) ** 0.5,
    }


def _step(
    recipe: Recipe,
    device: str,
    samples: range,
    shard: Callable[[Any], None] | None = None,
) -> tuple[float, dict[str, Any]]:
    """Return the loss of one step in fp32 with some samples, and the weights after it."""
    import torch

    from .trainer import tiny_model

    torch.manual_seed(recipe.seed)
    model = tiny_model(replace(recipe, attention="")).to(device)
    if shard is not None:
        shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=_RATE)
    data = SequenceDataset()
    symbols = torch.tensor([data[index]["input_ids"] for index in samples], device=device)
    loss = next_token_loss(model(input_ids=symbols).logits, symbols)
    loss.backward()
    optimizer.step()
    return float(loss.detach()), {name: t.detach() for name, t in model.state_dict().items()}


def _gather(own: str) -> list[str]:
    """Return the texts of all processes in the order of their ranks."""
    from torch import distributed

    texts: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(texts, own)
    return [str(text) for text in texts]
