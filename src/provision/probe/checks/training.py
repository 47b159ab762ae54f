"""Checks of a small training run."""

from __future__ import annotations

from ..values import Check, Need, Threshold
from .packages import OF_IMPORTS

LEARNS = Threshold(0.5, "mean of the last 5 losses / mean of the first 5", "AdamW measures 0.15 here; SGD at AdamW's usual rate, which does not learn, 0.98")

_RUN = (Need.TORCH, Need.TRAINING)

CHECKS: tuple[Check, ...] = (
    Check(
        "R01",
        "training",
        "imports and arguments",
        "training",
        ("train.unknown_arguments", "train.refused_arguments", "package.transformers", "package.accelerate", *OF_IMPORTS),
        needs=_RUN,
    ),
    Check(
        "R02",
        "training",
        "learns",
        "training",
        ("package.torch", "package.transformers", "package.accelerate", "torch.cpu_capability", "train.loss_first", "train.loss_last"),
        needs=_RUN,
        after=("R01",),
        threshold=LEARNS,
    ),
    Check("R03", "training", "precision in effect", "training", ("train.dtype", "gpu.available", "gpu.name"), needs=_RUN, after=("R01", "R02")),
    Check("R06", "training", "checkpoint is complete", "training", ("train.checkpoint_missing", "disk.*"), needs=_RUN, after=("R01", "R02")),
    Check("R07", "training", "declared options in effect", "training", ("train.options", "package.transformers"), needs=_RUN, after=("R01", "R02")),
    Check(
        "R04",
        "training",
        "repeats exactly",
        "training",
        ("train.weights_sha", "train.repeat_sha", "gpu.name", "package.torch"),
        needs=_RUN,
        after=("R01", "R02"),
    ),
    Check(
        "R05",
        "training",
        "resumes exactly in a fresh process",
        "resume",
        ("train.weights_sha", "resume.weights_sha", "package.torch", "package.transformers", "package.accelerate", "gpu.name"),
        needs=_RUN,
        after=("R01", "R02", "R06"),
    ),
)
