"""Checks that cards compute together."""

from __future__ import annotations

from ..model import Check, Need, Threshold, Tier

BUS_WARNS = Threshold(
    0.8,
    "of the bus bandwidth measured on such a machine",
    "own choice; the bandwidths are those that Azure's node health checks ask",
)
BUS_GB_S = {("A100", 8): 228.0, ("H100", 8): 460.0, ("H200", 8): 431.0}
"""GB/s of a large all_reduce by a word of the card's name and the number of cards. Source:
Azure/azurehpc-health-checks, 0e0a1ac.
"""

_ONE = (Need.TORCH, Need.GPU)
_SEVERAL = (*_ONE, Need.SEVERAL)
_CAUSES = (
    "env.NCCL_P2P_DISABLE",
    "host.shm_bytes",
    "driver.version",
    "torch.libraries",
    "gpu.name",
    "gpu.count",
)

CHECKS: tuple[Check, ...] = (
    Check(
        "C01",
        "several",
        "NCCL starts",
        "collectives",
        _CAUSES,
        needs=_ONE,
        after=("T02",),
        quiet=True,
    ),
    Check(
        "C02",
        "several",
        "all cards add up",
        "collectives",
        _CAUSES,
        needs=_SEVERAL,
        after=("T02",),
        quiet=True,
    ),
    Check(
        "C03",
        "several",
        "bandwidth between cards",
        "collectives",
        _CAUSES,
        Tier.DEEP,
        needs=_SEVERAL,
        after=("T02", "C02"),
        required_by="",
        quiet=True,
    ),
)
