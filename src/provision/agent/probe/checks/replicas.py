"""Checks of a job that runs on several machines (area G)."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold

CLOCKS_DIFFER = Threshold(
    1.0, "s between the clocks of two machines", "own choice: logs and tokens need no more"
)

_replicas = partial(
    Check,
    group="replicas",
    stage="replicas",
    causes=("replicas.count",),
    needs=(Need.REPLICAS,),
    quiet=True,
)
CHECKS = (
    _replicas("G01", title="all machines are there"),
    _replicas(
        "G02",
        title="all-reduce across machines",
        needs=(Need.REPLICAS, Need.TORCH),
        after=("G01",),
        causes=("replicas.count", "torch.libraries", "driver.version"),
    ),
    _replicas("G06", title="one identity on all machines", causes=("replicas.differences",)),
    _replicas(
        "G08",
        title="clocks and shared memory of all machines",
        causes=("replicas.clock_spread_s", "replicas.shm_bytes"),
        threshold=CLOCKS_DIFFER,
    ),
)
