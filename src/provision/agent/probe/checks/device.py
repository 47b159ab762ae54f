"""Checks of the card's memory, of what moves through it and of how fast it multiplies."""

from __future__ import annotations

from ..model import Check, Need, Threshold, Tier

FREE_SHARE = Threshold(
    0.95,
    "of the card's memory is free",
    "own choice: the driver and torch's own context take about 0.5 GiB",
)
TESTED_SHARE = Threshold(
    0.75,
    "of the card's memory was tested",
    "DCGM 4.6, memory test: below it the test counts as not done",
)
COPY_FAILS = Threshold(
    0.55, "of the card's bandwidth", "DCGM 4.6 asks 1.905 of 3.35 TB/s of an H100, 0.57"
)
COPY_WARNS = Threshold(0.75, "of the card's bandwidth", "an H200 measures 4.3 of 4.8 TB/s, 0.90")
LINK_FAILS = Threshold(
    0.35,
    "of the link's bandwidth",
    "own choice: half of what Azure's node checks ask (21 of 31.5 GB/s, 48 of 63)",
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

CHECKS: tuple[Check, ...] = (
    Check(
        "M01",
        "card",
        "memory can be held",
        "device",
        _MEMORY,
        needs=_GPU,
        after=("T02",),
        threshold=FREE_SHARE,
        quiet=True,
    ),
    Check(
        "M02",
        "card",
        "memory holds what is written",
        "device",
        _MEMORY,
        needs=_GPU,
        after=("T02", "M01"),
        threshold=TESTED_SHARE,
        quiet=True,
    ),
    Check(
        "B01",
        "card",
        "copies on the card",
        "device",
        _SPEED,
        needs=_GPU,
        after=("T02",),
        threshold=COPY_FAILS,
        quiet=True,
    ),
    Check(
        "B02",
        "card",
        "copies to and from the card",
        "device",
        _SPEED,
        needs=_GPU,
        after=("T02",),
        threshold=LINK_FAILS,
        quiet=True,
    ),
    Check(
        "F01",
        "card",
        "speed of products",
        "device",
        _SPEED,
        needs=_GPU,
        after=("T02",),
        threshold=PRODUCT_FAILS,
        quiet=True,
    ),
    Check(
        "F02",
        "card",
        "speed in other formats",
        "device",
        _SPEED,
        Tier.DEEP,
        needs=_GPU,
        after=("T02",),
        required_by="",
        quiet=True,
    ),
    Check(
        "F03",
        "card",
        "speed over a minute",
        "device",
        _SPEED,
        Tier.BURN,
        needs=_GPU,
        after=("T02",),
        threshold=BURN_STEADINESS,
        quiet=True,
    ),
)
