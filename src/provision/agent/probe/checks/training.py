"""Checks of a small training run."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold
from .packages import IMPORT_CAUSES

LOSS_RATIO = Threshold(
    0.5,
    "mean of the last 5 losses / mean of the first 5",
    "AdamW measures 0.15 here; SGD at AdamW's usual rate, which does not learn, 0.98",
)

ADAPTER_LOSS_RATIO = Threshold(
    0.95,
    "mean of the last 5 losses / mean of the first 5",
    "LoRA of rank 8 on a frozen random model measures 0.894 here; a learning rate of 0, 0.999",
)
_APART = "a process that trains alone on its half of each batch measures 0.48"
DISTRIBUTED_ERROR = Threshold(
    1e-3,
    "relative Frobenius distance of the weights",
    f"2 processes over gloo in fp32 measure 1.5e-7 to 7.1e-5 here; {_APART}",
)
DISTRIBUTED_ERROR_ROUNDED = Threshold(
    0.1,
    DISTRIBUTED_ERROR.unit,
    "2 processes over gloo measure 0.016 here in bf16, because other batches round "
    f"differently, and 0.0031 with 8-bit AdamW states; {_APART}",
)

_RUN = (Need.TORCH, Need.TRAINING)

_training = partial(Check, group="training", stage="training", needs=_RUN, after=("R01", "R02"))
CHECKS = (
    _training(
        "R01",
        title="imports and arguments",
        causes=(
            "train.unknown_arguments",
            "train.refused_arguments",
            "package.transformers",
            "package.accelerate",
            *IMPORT_CAUSES,
        ),
        after=(),
    ),
    _training(
        "R02",
        title="learns",
        causes=(
            "package.torch",
            "package.transformers",
            "package.accelerate",
            "torch.cpu_capability",
            "train.loss_first",
            "train.loss_last",
        ),
        after=("R01",),
        threshold=LOSS_RATIO,
    ),
    _training(
        "R03", title="precision in effect", causes=("train.dtype", "gpu.available", "gpu.name")
    ),
    _training("R06", title="checkpoint is complete", causes=("train.checkpoint_missing", "disk.*")),
    _training(
        "R07", title="declared options in effect", causes=("train.options", "package.transformers")
    ),
    _training(
        "R04",
        title="repeats exactly",
        causes=("train.weights_sha", "train.repeat_sha", "gpu.name", "package.torch"),
    ),
    _training(
        "R05",
        title="resumes exactly in a fresh process",
        stage="resume",
        causes=(
            "train.weights_sha",
            "resume.weights_sha",
            "package.torch",
            "package.transformers",
            "package.accelerate",
            "gpu.name",
        ),
        after=("R01", "R02", "R06"),
    ),
    _training(
        "R10",
        title="tokenizer and dataset round trip",
        causes=("package.tokenizers", "package.datasets", "package.pyarrow", "package.numpy"),
        after=("R01",),
    ),
    _training(
        "R11",
        title="device and parallel mode",
        causes=(
            "train.device",
            "train.n_gpu",
            "train.parallel_mode",
            "gpu.count",
            "package.transformers",
        ),
    ),
    _training(
        "R12",
        title="adapter trains and reloads",
        causes=("package.peft", "package.transformers", "package.torch", "package.bitsandbytes"),
        needs=(*_RUN, Need.ADAPTER),
        after=("R01",),
        threshold=ADAPTER_LOSS_RATIO,
    ),
    _training(
        "R13",
        title="strategy in effect",
        stage="launch",
        causes=(
            "launch.wrapper",
            "launch.backend",
            "package.torch",
            "package.accelerate",
            "package.deepspeed",
            "gpu.count",
        ),
        needs=(*_RUN, Need.STRATEGY),
        after=("R01",),
        threshold=DISTRIBUTED_ERROR,
    ),
)
