"""Checks of a small training run."""

from __future__ import annotations

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
_APART = "a process that trains alone on its half of each batch, 0.48"
DISTRIBUTED_ERROR = Threshold(
    1e-3,
    "relative Frobenius distance of the weights",
    f"2 processes over gloo in fp32 measure 1.5e-7 to 7.1e-5 here; {_APART}",
)
DISTRIBUTED_ERROR_ROUNDED = Threshold(
    0.1,
    DISTRIBUTED_ERROR.unit,
    "2 processes over gloo measure 0.016 here in bf16, where other batches round "
    f"otherwise, and 0.0031 with the state of AdamW in 8 bits; {_APART}",
)

_RUN = (Need.TORCH, Need.TRAINING)

CHECKS: tuple[Check, ...] = (
    Check(
        "R01",
        "training",
        "imports and arguments",
        "training",
        (
            "train.unknown_arguments",
            "train.refused_arguments",
            "package.transformers",
            "package.accelerate",
            *IMPORT_CAUSES,
        ),
        needs=_RUN,
    ),
    Check(
        "R02",
        "training",
        "learns",
        "training",
        (
            "package.torch",
            "package.transformers",
            "package.accelerate",
            "torch.cpu_capability",
            "train.loss_first",
            "train.loss_last",
        ),
        needs=_RUN,
        after=("R01",),
        threshold=LOSS_RATIO,
    ),
    Check(
        "R03",
        "training",
        "precision in effect",
        "training",
        ("train.dtype", "gpu.available", "gpu.name"),
        needs=_RUN,
        after=("R01", "R02"),
    ),
    Check(
        "R06",
        "training",
        "checkpoint is complete",
        "training",
        ("train.checkpoint_missing", "disk.*"),
        needs=_RUN,
        after=("R01", "R02"),
    ),
    Check(
        "R07",
        "training",
        "declared options in effect",
        "training",
        ("train.options", "package.transformers"),
        needs=_RUN,
        after=("R01", "R02"),
    ),
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
        (
            "train.weights_sha",
            "resume.weights_sha",
            "package.torch",
            "package.transformers",
            "package.accelerate",
            "gpu.name",
        ),
        needs=_RUN,
        after=("R01", "R02", "R06"),
    ),
    Check(
        "R10",
        "training",
        "tokenizer and dataset round trip",
        "training",
        ("package.tokenizers", "package.datasets", "package.pyarrow", "package.numpy"),
        needs=_RUN,
        after=("R01",),
    ),
    Check(
        "R11",
        "training",
        "device and parallel mode",
        "training",
        ("train.device", "train.n_gpu", "train.parallel_mode", "gpu.count", "package.transformers"),
        needs=_RUN,
        after=("R01", "R02"),
    ),
    Check(
        "R12",
        "training",
        "adapter trains and reloads",
        "training",
        ("package.peft", "package.transformers", "package.torch", "package.bitsandbytes"),
        needs=(*_RUN, Need.ADAPTER),
        after=("R01",),
        threshold=ADAPTER_LOSS_RATIO,
    ),
    Check(
        "R13",
        "training",
        "strategy in effect",
        "launch",
        (
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
