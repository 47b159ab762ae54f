"""Checks of the card's memory, of what moves through it and of how fast it multiplies."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold, Tier

FREE_SHARE = Threshold(
    0.95,
    "of the card's memory is free",
    "own choice: the driver and torch's own context take about 0.5 GiB",
)
TESTED_SHARE = Threshold(
    0.75,
    "of the card's memory was tested",
    "DCGM 4.6, memory test: below this share, the test counts as not done",
)
COPY_FAILS = Threshold(
    0.55, "of the card's bandwidth", "DCGM 4.6 requires 1.905 of 3.35 TB/s on an H100, 0.57"
)
COPY_WARNS = Threshold(0.75, "of the card's bandwidth", "an H200 measures 4.3 of 4.8 TB/s, 0.90")
LINK_FAILS = Threshold(
    0.35,
    "of the link's bandwidth",
    "own choice: half of what Azure's node checks require (21 of 31.5 GB/s, 48 of 63)",
)
LINK_WARNS = Threshold(
    0.65,
    "of the link's bandwidth",
    "Azure's node health checks: 21 of 31.5 GB/s (PCIe 4), 48 of 63 GB/s (PCIe 5)",
)
PRODUCT_FAILS = Threshold(
    0.50,
    "of the card's dense peak",
    "own choice: an H200 measures 0.80; 0.60 is the least in ml-engineering's table of "
    "measured maxima",
)
PRODUCT_WARNS = Threshold(
    0.65, "of the card's dense peak", "an H200 measures 769-798 of 989 TFLOP/s in bf16, 0.80"
)
CARD_SPREAD = Threshold(
    0.9,
    "of the fastest card of this machine",
    "gpu-fryer: within 10 % of the best card; 5 % between equal cards is usual (ml-engineering)",
)
BURN_STEADINESS = Threshold(
    0.9, "of the first quarter's speed in the last", "gpu-fryer: within 10 % of the best"
)

_GPU = (Need.TORCH, Need.GPU)
_MEMORY = (
    "nvml.used_bytes",
    "nvml.uncorrected",
    "nvml.remap_pending",
    "gpu.name",
    "memory.held_bytes",
)
_SPEED = (
    "nvml.reasons",
    "nvml.power_limit_mw",
    "nvml.mig",
    "driver.version",
    "gpu.name",
    "nvml.used_bytes",
)

_card = partial(Check, group="card", stage="device", needs=_GPU, after=("T02",), quiet=True)
CHECKS = (
    _card("M01", title="GPU memory allocation", causes=_MEMORY, threshold=FREE_SHARE),
    _card(
        "M02",
        title="GPU memory test",
        causes=_MEMORY,
        after=("T02", "M01"),
        threshold=TESTED_SHARE,
    ),
    _card("B01", title="GPU memory bandwidth", causes=_SPEED, threshold=COPY_FAILS),
    _card("B02", title="copies to and from the GPU", causes=_SPEED, threshold=LINK_FAILS),
    _card("F01", title="matrix multiplication speed", causes=_SPEED, threshold=PRODUCT_FAILS),
    _card(
        "F02", title="speed in other number formats", causes=_SPEED, tier=Tier.DEEP, required_by=""
    ),
    _card(
        "F03",
        title="speed over one minute",
        causes=_SPEED,
        tier=Tier.BURN,
        threshold=BURN_STEADINESS,
    ),
)
