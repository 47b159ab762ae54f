"""Checks of DataLoader workers."""

from __future__ import annotations

from ..values import Check, Need

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
)
