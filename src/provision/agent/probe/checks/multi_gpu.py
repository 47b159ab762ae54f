"""Checks that cards compute together."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold, Tier

BUS_WARNS = Threshold(
    0.8,
    "of the bus bandwidth measured on such a machine",
    "own choice; the bandwidths are those that Azure's node health checks require",
)
BUS_GB_S = {("A100", 8): 228.0, ("H100", 8): 460.0, ("H200", 8): 431.0}
"""GB/s of a large all_reduce by a word of the card's name and the number of cards. Source:
Azure/azurehpc-health-checks, 0e0a1ac.
"""

_ONE = (Need.TORCH, Need.GPU)
_CAUSES = (
    "env.NCCL_P2P_DISABLE",
    "host.shm_bytes",
    "driver.version",
    "torch.libraries",
    "gpu.name",
    "gpu.count",
)

_cards = partial(
    Check,
    group="several",
    stage="collectives",
    causes=_CAUSES,
    needs=(*_ONE, Need.SEVERAL),
    after=("T02",),
    quiet=True,
)
CHECKS = (
    _cards("C01", title="NCCL starts", needs=_ONE),
    _cards("C02", title="all-reduce across GPUs"),
    _cards(
        "C03", title="bandwidth between GPUs", tier=Tier.DEEP, after=("T02", "C02"), required_by=""
    ),
)
