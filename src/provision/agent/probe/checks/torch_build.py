"""Checks of the torch build and the device it sees."""

from __future__ import annotations

from ..model import Check, Need

_TORCH = (Need.TORCH,)
_GPU = (Need.TORCH, Need.GPU)
_FORMATS = ("gpu.formats", "gpu.name", "gpu.compute_capability")

CHECKS: tuple[Check, ...] = (
    Check(
        "T01",
        "torch",
        "torch build",
        "torch",
        ("torch.version", "torch.cuda", "package.torch", "packages.shadowed"),
        needs=_TORCH,
    ),
    Check(
        "T02",
        "torch",
        "device",
        "torch",
        (
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
        needs=_GPU,
        after=("T01",),
    ),
    Check(
        "T03",
        "torch",
        "GPU architecture",
        "torch",
        ("gpu.compute_capability", "torch.arch_list", "torch.version"),
        needs=_GPU,
        after=("T01", "T02"),
    ),
    Check(
        "T04",
        "torch",
        "cuDNN, NCCL, Triton",
        "torch",
        ("torch.libraries", "env.LD_LIBRARY_PATH"),
        needs=_GPU,
        after=("T01",),
        quiet=True,
    ),
    Check(
        "T05",
        "torch",
        "precision of the card",
        "torch",
        _FORMATS,
        needs=_GPU,
        after=("T01", "T02"),
        quiet=True,
    ),
    Check(
        "T06",
        "torch",
        "torch's flags",
        "torch",
        ("torch.flags", "env.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
        needs=_TORCH,
        after=("T01",),
        required_by="",
    ),
    Check(
        "T07",
        "torch",
        "attention backends",
        "torch",
        ("attention.errors", "gpu.compute_capability", "torch.version"),
        needs=_TORCH,
        after=("T01",),
    ),
)
