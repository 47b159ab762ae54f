"""Checks of DataLoader workers."""

from __future__ import annotations

from ..model import Check, Need, Tier

_TORCH = (Need.TORCH,)

CHECKS: tuple[Check, ...] = (
    Check(
        "L01",
        "loaders",
        "DataLoader, fork",
        "loaders",
        ("host.shm_bytes", "host.nofile", "torch.version"),
        needs=_TORCH,
        required_by="training.dataloader_workers",
    ),
    Check(
        "L02",
        "loaders",
        "DataLoader, spawn",
        "loaders",
        ("host.shm_bytes", "host.nofile", "torch.version"),
        needs=_TORCH,
        required_by="training.dataloader_workers",
    ),
    Check(
        "L03",
        "loaders",
        "DataLoader, forkserver",
        "loaders",
        ("host.shm_bytes", "host.nofile", "torch.version"),
        Tier.DEEP,
        needs=_TORCH,
        required_by="training.dataloader_workers",
    ),
    Check(
        "L04",
        "loaders",
        "a large batch",
        "loaders",
        ("host.shm_bytes",),
        needs=(Need.TORCH, Need.WORKERS),
        quiet=True,
    ),
)
