"""Checks of a job that runs on several machines (area G)."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold
from .training import DISTRIBUTED_ERROR

CLOCKS_DIFFER = Threshold(
    1.0, "s between the clocks of two machines", "own choice: logs and tokens need no more"
)
SLOW_NETWORK = Threshold(
    0.125, "GB/s of bus bandwidth", "own choice: 1 Gbit/s, which no interconnect for training is"
)
SLOW_MACHINE = Threshold(
    3.0,
    "times slower on its best link than the machines are in the middle",
    "own choice: a host with a throttled link had 25 MB/s on both its links, and the others had "
    "500 to 770 MB/s on a busy machine",
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
    _replicas(
        "G03",
        title="bandwidth between machines",
        needs=(Need.REPLICAS, Need.TORCH),
        after=("G02",),
        causes=("replicas.bus_gb_s", "replicas.links_mb_s"),
        required_by="",
        threshold=SLOW_NETWORK,
    ),
    _replicas(
        "G04",
        title="no machine has a slow link",
        needs=(Need.REPLICAS, Need.TORCH),
        after=("G02",),
        causes=("replicas.links_mb_s",),
        threshold=SLOW_MACHINE,
    ),
    _replicas(
        "G05",
        title="a training step on all machines",
        needs=(Need.REPLICAS, Need.TORCH),
        after=("G02",),
        causes=("replicas.count", "package.*", "torch.libraries"),
        threshold=DISTRIBUTED_ERROR,
    ),
    _replicas("G06", title="one identity on all machines", causes=("replicas.differences",)),
    _replicas(
        "G07",
        title="checkpoints are on a shared folder",
        causes=("replicas.unread_marks", "path.*"),
    ),
    _replicas(
        "G08",
        title="clocks and shared memory of all machines",
        causes=("replicas.clock_spread_s", "replicas.shm_bytes"),
        threshold=CLOCKS_DIFFER,
    ),
)
