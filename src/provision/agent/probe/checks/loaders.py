"""Checks of DataLoader workers."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Tier

_loaders = partial(
    Check,
    group="loaders",
    stage="loaders",
    causes=("host.shm_bytes", "host.nofile", "torch.version"),
    needs=(Need.TORCH,),
    required_by="training.dataloader_workers",
)
CHECKS = (
    _loaders("L01", title="DataLoader with fork"),
    _loaders("L02", title="DataLoader with spawn"),
    _loaders("L03", title="DataLoader with forkserver", tier=Tier.DEEP),
    _loaders(
        "L04",
        title="large batch",
        causes=("host.shm_bytes",),
        needs=(Need.TORCH, Need.WORKERS),
        required_by="always",
        quiet=True,
    ),
)
