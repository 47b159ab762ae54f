"""Checks of the torch build and the device it sees."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need

_TORCH = (Need.TORCH,)
_GPU = (Need.TORCH, Need.GPU)
_FORMATS = ("gpu.formats", "gpu.name", "gpu.compute_capability")

_torch = partial(Check, group="torch", stage="torch", needs=_GPU, after=("T01",))
CHECKS = (
    _torch(
        "T01",
        title="torch build",
        causes=("torch.version", "torch.cuda", "package.torch", "packages.shadowed"),
        needs=_TORCH,
        after=(),
    ),
    _torch(
        "T02",
        title="devices that torch sees",
        causes=(
            "torch.cuda",
            "driver.version",
            "driver.error",
            "gpu.cuda_code",
            "env.CUDA_VISIBLE_DEVICES",
            "nvml.count",
            "gpu.count",
            "gpu.available",
            "gpu.errors",
        ),
    ),
    _torch(
        "T03",
        title="GPU architecture",
        causes=("gpu.compute_capability", "torch.arch_list", "torch.version"),
        after=("T01", "T02"),
    ),
    _torch(
        "T04",
        title="cuDNN, NCCL, Triton",
        causes=("torch.libraries", "env.LD_LIBRARY_PATH"),
        quiet=True,
    ),
    _torch("T05", title="GPU number formats", causes=_FORMATS, after=("T01", "T02"), quiet=True),
    _torch(
        "T06",
        title="torch flags",
        causes=("torch.flags", "env.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
        needs=_TORCH,
        required_by="",
    ),
    _torch(
        "T07",
        title="attention backends",
        causes=("attention.errors", "gpu.compute_capability", "torch.version"),
        needs=_TORCH,
    ),
)
