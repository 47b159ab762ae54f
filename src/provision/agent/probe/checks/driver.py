"""Checks of the driver and its cards, asked of NVML."""

from __future__ import annotations

from collections.abc import Iterable

from ..model import Check, Need, Threshold, Tier

NO_SLOWDOWN = Threshold(
    0,
    "reasons to slow down",
    "nvml.h, nvmlClocksEventReasons: bits 0x08, 0x20, 0x40 and 0x80; idle, application "
    "clocks and the power cap are no fault",
)
_SLOWING = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
DRIVER_FLOOR = Threshold(
    0,
    "drivers older than the lock's floor",
    "NVIDIA, CUDA release notes: the oldest driver that each major version of CUDA runs on",
)
CARD_USED = Threshold(
    0.03, "of the card's memory", "own choice: what the driver itself keeps stays below it"
)
MEMORY_BAND = Threshold(
    0.02,
    "of the card's memory",
    "own choice; vendors write GB for GiB or for 10^9 bytes, and GDDR cards give 1/16 to ECC",
)
VRAM_SHARE = 0.9
"""Own choice: a card's driver and ECC keep a part of the memory that its name promises (an 80 GB
card shows 79.1 GiB).
"""
FATAL_XIDS = frozenset(
    {48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 94, 95, 119, 120}
)
NO_XID = Threshold(
    0,
    "Xids that name a fault of the card",
    "Azure/azurehpc-health-checks (48 to 120), with the contained and uncontained ECC "
    "errors 94 and 95",
)

_CARD = (Need.GPU,)
_FACTS = Tier.INVENTORY
_SIZE = ("gpu.name", "gpu.vram_bytes", "nvml.ecc", "nvml.mig")
_FAULTS = ("nvml.uncorrected", "nvml.remap_*", "nvml.retired_pending")

CHECKS: tuple[Check, ...] = (
    Check(
        "D01",
        "device",
        "driver answers",
        "driver",
        ("driver.error", "nvml.count", "nvml.count_all", "driver.version"),
        _FACTS,
        needs=_CARD,
    ),
    Check(
        "D02",
        "device",
        "driver version",
        "driver",
        ("driver.version",),
        _FACTS,
        needs=_CARD,
        after=("D01",),
        required_by="driver_specifiers",
    ),
    Check(
        "D03",
        "device",
        "GPU model",
        "driver",
        ("gpu.name", "gpu.compute_capability", "nvml.pci"),
        _FACTS,
        needs=_CARD,
        after=("D01",),
    ),
    Check(
        "D04",
        "device",
        "GPU memory",
        "driver",
        _SIZE,
        _FACTS,
        needs=_CARD,
        after=("D01",),
        threshold=MEMORY_BAND,
    ),
    Check("D05", "device", "memory errors", "driver", _FAULTS, _FACTS, needs=_CARD, after=("D01",)),
    Check(
        "D06",
        "device",
        "clocks",
        "driver",
        ("nvml.slowed*", "nvml.power_limit_mw"),
        _FACTS,
        needs=_CARD,
        after=("D01",),
        threshold=NO_SLOWDOWN,
    ),
    Check(
        "D07",
        "device",
        "recovery and fabric",
        "driver",
        ("nvml.recovery", "nvml.fabric"),
        _FACTS,
        needs=_CARD,
        after=("D01",),
    ),
    Check(
        "D08",
        "device",
        "card is free",
        "driver",
        ("nvml.used_bytes",),
        _FACTS,
        needs=_CARD,
        after=("D01",),
        required_by="",
        threshold=CARD_USED,
    ),
    Check(
        "D09",
        "device",
        "card as delivered",
        "driver",
        ("nvml.mig", "nvml.compute_mode"),
        _FACTS,
        needs=_CARD,
        after=("D01",),
        required_by="",
    ),
    Check(
        "D11",
        "device",
        "driver's log",
        "driver",
        ("nvml.xids",),
        _FACTS,
        needs=_CARD,
        after=("D01",),
        required_by="",
        threshold=NO_XID,
    ),
    Check(
        "D10",
        "device",
        "DCGM diagnosis",
        "diagnosis",
        ("dcgm.failed",),
        needs=_CARD,
        required_by="",
    ),
)


def slowdown_faults(masks: Iterable[int | None]) -> list[str]:
    """Return the faults that slow any of the cards; several bits may be set at once."""
    return sorted({name for mask in masks for bit, name in _SLOWING.items() if (mask or 0) & bit})
