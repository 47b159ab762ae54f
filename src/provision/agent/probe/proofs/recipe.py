"""The recipe of every proof: data, steps, learning rates, and the hash of weights."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..expectations import Expectations
from ..model import JsonObject

VOCABULARY, SYMBOLS, LENGTH, EXAMPLES = 128, 124, 32, 104
"""104 examples make 13 batches an epoch, so the checkpoint at step 20 lies inside the second one
and resuming has to skip batches.
"""

LEARNING_RATES = {
    "adamw": 7e-3,
    "adam": 7e-3,
    "adafactor": 5e-3,
    "sgd": 1.0,
    "adagrad": 1e-2,
    "rmsprop": 1e-3,
}
"""Rates at which this run learns, by the first word of the optimizer's name; the measured share of
the loss that is left after 40 steps of the
Trainer run is adamw 0.15, adafactor 0.18, sgd 0.13, adagrad 0.42, rmsprop 0.41 (torch 2.13,
transformers 5.23).
"""
_OTHER_RATE = 3e-3
ATTENTION = "attn_implementation"
"""An argument of the model, not of TrainingArguments: taken from training.arguments for the model
that the proof builds.
"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One run; `device` is "cpu", "cuda" or "mps", `precision` the declared one.

    `attention` is the implementation that is declared by a locked package; "" leaves it to
    transformers. `batch` counts the samples of one of `ranks` processes, which together take
    the same samples as one process with all of them would.
    """

    precision: str = "fp32"
    optimizer: str = "adamw_torch"
    workers: int = 0
    gradient_checkpointing: bool = False
    device: str = "cpu"
    learning_rate: float = 7e-3
    steps: int = 40
    save_at: int = 20
    batch: int = 8
    dropout: float = 0.1
    seed: int = 20
    attention: str = ""
    rank: int = 0
    ranks: int = 1

    @classmethod
    def of(cls, expected: Expectations) -> Recipe:
        """The recipe for the declared training."""
        training = expected.training
        device = expected.device
        flash = (
            device == "cuda"
            and "flash-attn" in expected.packages
            and training.precision in ("bf16", "fp16")
        )
        return cls(
            precision=training.precision,
            optimizer=training.optimizer,
            workers=training.dataloader_workers,
            gradient_checkpointing=training.gradient_checkpointing,
            device=device,
            learning_rate=LEARNING_RATES.get(optimizer_family(training.optimizer), _OTHER_RATE),
            attention=str(training.arguments.get(ATTENTION, "flash_attention_2" if flash else "")),
        )


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """Result of a run: losses, hash of the final weights, a linear layer's type, last step.

    `made` counts the steps that this process made, which after a resume are fewer; `still`
    names the weights that are as they were before. `product_error` is the relative error of
    that layer's first product against float64; None where the run does not keep it.
    """

    losses: tuple[float, ...]
    weights_sha: str
    dtype: str
    steps: int
    made: int
    still: tuple[str, ...]
    product_error: float | None = None


class TrainingRun(Protocol):
    """A run that is ready to train; `options` maps names to (declared, in effect)."""

    options: dict[str, tuple[Any, Any]]
    notes: JsonObject

    def train(self, resume_from: Path | None = None) -> TrainingOutcome:
        """Train to the last step, from the start or from a checkpoint."""
        ...

    def placement(self) -> JsonObject:
        """Readings of the placement: device, GPUs, parallel mode, classes around the model."""
        ...

    def record_effective_options(self) -> None:
        """After training: look what is really in effect, and note it in `options`."""
        ...


class SequenceDataset:
    """Sequences with x' = (5 x + 3) mod 124. Needs no torch, so workers import little."""

    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        symbols = [index * 7 % SYMBOLS]
        while len(symbols) < LENGTH:
            symbols.append((5 * symbols[-1] + 3) % SYMBOLS)
        return {"input_ids": symbols, "labels": symbols}


def optimizer_family(optimizer: str) -> str:
    """The first word of an optimizer's name: "adamw_torch_fused" is of the family "adamw"."""
    return optimizer.lower().split("_")[0]


def checkpoint_folder(folder: Path, recipe: Recipe) -> Path:
    """Return the folder of a run's checkpoint, in either proof."""
    return folder / f"checkpoint-{recipe.save_at}"


def prepare_environment(
    environ: MutableMapping[str, str],
    expected: Expectations,
    scratch: Path,
    *,
    every_device: bool = False,
) -> None:
    """Set caches and visible devices; has to happen before torch is imported.

    With `every_device`, several processes train: whether Trainer connects them without a GPU
    depends on ACCELERATE_USE_CPU, which stays as a program gets it.
    """
    environ["HF_HOME"] = str(scratch / "hf")
    if expected.gpu_type or not every_device:
        environ["ACCELERATE_USE_CPU"] = "false" if expected.gpu_type else "true"
    if expected.gpu_type is None:
        environ["CUDA_VISIBLE_DEVICES"] = ""
    elif expected.gpu_count > 1 and not every_device:
        # With several devices visible the Trainer would silently use DataParallel.
        environ["CUDA_VISIBLE_DEVICES"] = (environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")[0]


def half_type(precision: str) -> Any:
    """Return torch's type of a 16-bit precision; None for another precision."""
    import torch

    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)


def autocast(device: str, precision: str) -> AbstractContextManager[Any]:
    """Return the context in which torch computes in a precision; 32 bits need none."""
    import torch

    kind = half_type(precision)
    return nullcontext() if kind is None else torch.autocast(device, dtype=kind)


def next_token_loss(logits: Any, symbols: Any) -> Any:
    """Return the cross entropy of each symbol after the first."""
    import torch

    return torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), symbols[:, 1:].flatten()
    )


def weights_hash(tensors: Mapping[str, Any]) -> str:
    """Return the sha256 over names, types, shapes and bytes of a state dict. Needs no numpy."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        # Of a tensor that is spread over processes, the part that is here.
        tensor = (
            getattr(tensors[name], "to_local", lambda held=tensors[name]: held)()
            .detach()
            .cpu()
            .contiguous()
        )
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))
    return total.hexdigest()


def scratch_folder(scratch: Path, name: str) -> Path:
    """Return a new folder for one run."""
    folder = scratch / name
    os.makedirs(folder, exist_ok=True)
    return folder
