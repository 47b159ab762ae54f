"""Checks of the torch build and the device it sees."""

from __future__ import annotations

from ..values import Check, Need

_TORCH = (Need.TORCH,)
_GPU = (Need.TORCH, Need.GPU)

CHECKS: tuple[Check, ...] = (
    Check("T01", "torch", "torch build", "torch", ("torch.version", "torch.cuda", "package.torch", "packages.shadowed"), needs=_TORCH),
    Check(
        "T02",
        "torch",
        "device",
        "torch",
        ("torch.cuda", "driver.version", "gpu.count", "gpu.available", "env.CUDA_VISIBLE_DEVICES"),
        needs=_GPU,
        after=("T01",),
    ),
    Check("T03", "torch", "GPU architecture", "torch", ("gpu.compute_capability", "torch.arch_list", "torch.version"), needs=_GPU, after=("T01", "T02")),
)
