"""Checks of the driver and its cards, from readings of NVML."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ..model import Check, Need, Threshold, Tier

NO_SLOWDOWN = Threshold(
    0,
    "reasons to slow down",
    "nvml.h, nvmlClocksEventReasons: bits 0x08, 0x20, 0x40 and 0x80; idle, application "
    "clocks and the power cap are not faults",
)
SLOWDOWN_REASONS = {
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
    0.03,
    "of the card's memory",
    "own choice: the memory that the driver reserves for itself is below this",
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
    "Xids that report a fault of the card",
    "Azure/azurehpc-health-checks (48 to 120), with the contained and uncontained ECC "
    "errors 94 and 95",
)

_SIZE = ("gpu.name", "gpu.vram_bytes", "nvml.ecc", "nvml.mig")
_FAULTS = ("nvml.uncorrected", "nvml.remap_*", "nvml.retired_pending")

_card = partial(
    Check, group="device", stage="driver", tier=Tier.INVENTORY, needs=(Need.GPU,), after=("D01",)
)
CHECKS = (
    _card(
        "D01",
        title="driver responds",
        causes=("driver.error", "nvml.count", "nvml.count_all", "driver.version"),
        after=(),
    ),
    _card(
        "D02", title="driver version", causes=("driver.version",), required_by="driver_specifiers"
    ),
    _card("D03", title="GPU model", causes=("gpu.name", "gpu.compute_capability", "nvml.pci")),
    _card("D04", title="GPU memory", causes=_SIZE, threshold=MEMORY_BAND),
    _card("D05", title="GPU memory errors", causes=_FAULTS),
    _card(
        "D06",
        title="GPU clocks",
        causes=("nvml.slowed*", "nvml.power_limit_mw"),
        threshold=NO_SLOWDOWN,
    ),
    _card("D07", title="GPU recovery and NVLink fabric", causes=("nvml.recovery", "nvml.fabric")),
    _card(
        "D08",
        title="GPU is free",
        causes=("nvml.used_bytes",),
        required_by="",
        threshold=CARD_USED,
    ),
    _card("D09", title="GPU settings", causes=("nvml.mig", "nvml.compute_mode"), required_by=""),
    _card(
        "D11",
        title="GPU errors in the kernel log",
        causes=("nvml.xids",),
        required_by="",
        threshold=NO_XID,
    ),
    _card(
        "D10",
        title="DCGM diagnosis",
        stage="diagnosis",
        causes=("dcgm.failed",),
        tier=Tier.QUICK,
        after=(),
        required_by="",
    ),
)


def slowdown_faults(masks: Iterable[int | None]) -> list[str]:
    """Return the faults that slow any of the cards; several bits may be set at once."""
    return sorted(
        {name for mask in masks for bit, name in SLOWDOWN_REASONS.items() if (mask or 0) & bit}
    )
