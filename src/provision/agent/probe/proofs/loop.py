"""The proof with a plain torch loop, for stacks without transformers: an encoder with dropout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..model import JsonObject
from .instrumentation import WeightSnapshot, WorkerCounter, wrapper_classes, zero_weights
from .recipe import (
    EXAMPLES,
    VOCABULARY,
    Recipe,
    SequenceDataset,
    TrainingOutcome,
    autocast,
    checkpoint_folder,
    next_token_loss,
    optimizer_family,
    weights_hash,
)

CHECKPOINT_FILES = ("model.pt", "optimizer.pt", "rng_state.pt", "state.json")
_WIDTH, _HEADS, _INNER = 64, 4, 128
_OPTIMIZERS = {
    "adamw": "AdamW",
    "adam": "Adam",
    "sgd": "SGD",
    "adagrad": "Adagrad",
    "rmsprop": "RMSprop",
    "adafactor": "Adafactor",
    "nadam": "NAdam",
    "radam": "RAdam",
}

_RATE_FACTORS = {"Adafactor": 10.0}
"""torch's Adafactor scales its steps by the size of the weights, transformers' does not here;
measured share of the loss left: 0.003.
"""


class LoopRun:
    """Builds model and optimizer. Raises ValueError for an optimizer that torch lacks."""

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        arguments: JsonObject,
        _extra: JsonObject | None = None,
    ) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(recipe.seed)
        if recipe.device == "cuda":
            torch.use_deterministic_algorithms(True, warn_only=True)
            torch.set_float32_matmul_precision("high" if recipe.precision == "tf32" else "highest")
        self.recipe, self.folder = recipe, folder
        self.wrapped: Any = None
        self.notes: JsonObject = {
            "train.unknown_arguments": [],
            "train.refused_arguments": None,
            "train.not_exercised": sorted(arguments),
        }
        kind = optimizer_named(recipe.optimizer)
        self.layers = _layers(recipe.dropout).to(recipe.device)
        self.optimizer = kind(
            self.layers.parameters(),
            lr=recipe.learning_rate * _RATE_FACTORS.get(kind.__name__, 1.0),
        )
        self.options: dict[str, tuple[Any, Any]] = {
            "optimizer": (kind.__name__, type(self.optimizer).__name__)
        }

    def train(self, resume_from: Path | None = None) -> TrainingOutcome:
        """Train to the last step, from the start or from a checkpoint."""
        start = self._restore(resume_from) if resume_from else 0
        before, workers = WeightSnapshot(self.layers), WorkerCounter()
        self.layers.train()
        losses: list[float] = []
        dtype, checkpointed = "", 0
        forward = self._wrapped() if self.recipe.ranks > 1 else self._forward
        for step, batch in enumerate(self._loader(start), start + 1):
            workers.update()
            symbols = batch.to(self.recipe.device)
            with autocast(self.recipe.device, self.recipe.precision):
                logits, passes = forward(symbols)
                dtype = str(logits.dtype).removeprefix("torch.")
                loss = next_token_loss(logits, symbols)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            losses.append(float(loss.detach()))
            checkpointed += passes
            if step == self.recipe.save_at and not resume_from and not self.recipe.rank:
                self._save(step)
        self.options["gradient_checkpointing"] = (
            self.recipe.gradient_checkpointing,
            checkpointed > 0,
        )
        self.options["dataloader_workers"] = (self.recipe.workers, workers.most)
        return TrainingOutcome(
            tuple(losses),
            weights_hash(self.layers.state_dict()),
            dtype,
            start + len(losses),
            len(losses),
            before.unchanged(self.layers),
        )

    def _wrapped(self) -> Any:
        import torch

        whole: Any = torch.nn.Module()
        whole.layers, whole.forward = self.layers, self._forward
        self.wrapped = torch.nn.parallel.DistributedDataParallel(whole)
        return self.wrapped

    def placement(self) -> JsonObject:
        """Readings of the placement: one process, one device, classes around the model."""
        device = next(self.layers.parameters()).device.type
        return {
            "train.device": device,
            "train.n_gpu": int(device == "cuda"),
            "train.parallel_mode": ("distributed" if self.recipe.ranks > 1 else "not_parallel"),
            "train.wrapper": ", ".join(wrapper_classes(self.wrapped)),
        }

    @property
    def model(self) -> Any:
        """The module that is trained."""
        return self.layers

    def record_effective_options(self) -> None:
        """Do nothing: training has recorded them."""

    def _forward(self, symbols: Any) -> tuple[Any, int]:
        import torch
        from torch.utils.checkpoint import checkpoint

        mask = torch.triu(
            torch.full((symbols.shape[1], symbols.shape[1]), float("-inf"), device=symbols.device),
            1,
        )
        hidden, passes = self.layers["embedding"](symbols), 0
        for layer in self.layers["blocks"]:
            if self.recipe.gradient_checkpointing:
                hidden, passes = checkpoint(layer, hidden, mask, use_reentrant=False), passes + 1
            else:
                hidden = layer(hidden, mask)
        return self.layers["head"](hidden), passes

    def _loader(self, start: int) -> Any:
        import torch
        from torch.utils.data import DataLoader

        order: list[int] = []
        epoch = 0
        together = self.recipe.batch * self.recipe.ranks
        while len(order) < self.recipe.steps * together:
            order += torch.randperm(
                EXAMPLES, generator=torch.Generator().manual_seed(self.recipe.seed + epoch)
            ).tolist()
            epoch += 1
        first = self.recipe.rank * self.recipe.batch
        batches = [
            order[step * together + first :][: self.recipe.batch]
            for step in range(start, self.recipe.steps)
        ]
        dataset: Any = SequenceDataset()
        # A separate generator: starting workers must not draw from the random state in the
        # checkpoint.
        return DataLoader(
            dataset,
            batch_sampler=batches,
            num_workers=self.recipe.workers,
            collate_fn=_stacked,
            generator=torch.Generator(),
        )

    def _save(self, step: int) -> None:
        import torch

        folder = checkpoint_folder(self.folder, self.recipe)
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.layers.state_dict(), folder / "model.pt")
        torch.save(self.optimizer.state_dict(), folder / "optimizer.pt")
        random_state = {
            "cpu": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state() if self.recipe.device == "cuda" else None,
        }
        torch.save(random_state, folder / "rng_state.pt")
        (folder / "state.json").write_text(json.dumps({"step": step}), encoding="utf-8")

    def _restore(self, folder: Path) -> int:
        import torch

        zero_weights(self.layers)
        self.layers.load_state_dict(torch.load(folder / "model.pt", weights_only=True))
        self.optimizer.load_state_dict(torch.load(folder / "optimizer.pt", weights_only=True))
        random_state = torch.load(folder / "rng_state.pt", weights_only=True)
        torch.set_rng_state(random_state["cpu"])
        if random_state["cuda"] is not None:
            torch.cuda.set_rng_state(random_state["cuda"])
        return int(json.loads((folder / "state.json").read_text(encoding="utf-8"))["step"])


Run = LoopRun
"""The run of this proof; each proof module has one of this name."""


def optimizer_named(optimizer: str) -> Any:
    """Return torch.optim's class of a declared optimizer. Raises ValueError."""
    import torch

    kind = getattr(torch.optim, _OPTIMIZERS.get(optimizer_family(optimizer), ""), None)
    if kind is None:
        raise ValueError(
            f"torch.optim has no equivalent of {optimizer!r}; supported: "
            f"{', '.join(sorted(_OPTIMIZERS))}"
        )
    return kind


def _layers(dropout: float) -> Any:
    from torch import nn

    blocks = nn.ModuleList(
        nn.TransformerEncoderLayer(_WIDTH, _HEADS, _INNER, dropout, batch_first=True)
        for _ in range(2)
    )
    return nn.ModuleDict(
        {
            "embedding": nn.Embedding(VOCABULARY, _WIDTH),
            "blocks": blocks,
            "head": nn.Linear(_WIDTH, VOCABULARY),
        }
    )


def _stacked(examples: list[dict[str, list[int]]]) -> Any:
    import torch

    return torch.tensor([example["input_ids"] for example in examples])
