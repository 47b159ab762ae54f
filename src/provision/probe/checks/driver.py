"""Checks of the driver and its cards, asked of NVML."""

from __future__ import annotations

from ..values import Check, Need, Threshold, Tier

SLOWED = Threshold(
    0, "reasons to slow down", "nvml.h, nvmlClocksEventReasons: bits 0x08, 0x20, 0x40 and 0x80; idle, application clocks and the power cap are no fault"
)
CARD_USED = Threshold(0.03, "of the card's memory", "own choice: what the driver itself keeps stays below it")

_CARD = (Need.GPU,)

CHECKS: tuple[Check, ...] = (
    Check("D01", "device", "driver answers", "driver", ("driver.error", "driver.version", "nvml.count"), Tier.INVENTORY, needs=_CARD),
    Check("D02", "device", "driver version", "driver", ("driver.version",), Tier.INVENTORY, needs=_CARD, after=("D01",), required_by="requires.driver"),
    Check("D05", "device", "memory errors", "driver", ("nvml.uncorrected", "nvml.remap_*"), Tier.INVENTORY, needs=_CARD, after=("D01",)),
    Check("D06", "device", "clocks", "driver", ("nvml.reasons", "nvml.power_limit_mw"), Tier.INVENTORY, needs=_CARD, after=("D01",), threshold=SLOWED),
    Check("D08", "device", "card is free", "driver", ("nvml.used_bytes",), Tier.INVENTORY, needs=_CARD, after=("D01",), required_by="", threshold=CARD_USED),
    Check("D09", "device", "card as delivered", "driver", ("nvml.mig", "nvml.compute_mode"), Tier.INVENTORY, needs=_CARD, after=("D01",), required_by=""),
)
