"""Peaks of a run: of the program, of the machine, and of each card."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..checks.driver import SLOWDOWN_REASONS, slowdown_faults
from ..model import JsonObject


@dataclass(slots=True)
class CardPeak:
    """Peaks of one card: memory, utilization, temperature, power, and seconds slowed down."""

    name: str | None
    total_bytes: int | None
    before_bytes: int | None
    peak_bytes: int | None = None
    busy_percent_sum: int = 0
    samples: int = 0
    temperature_c: int | None = None
    power_mw: int | None = None
    slowed_samples: int = 0
    reasons: int = 0

    def add(self, seen: JsonObject) -> None:
        """Take one look in."""
        self.samples += 1
        self.busy_percent_sum += seen["busy_percent"] or 0
        self.peak_bytes = max_known(self.peak_bytes, seen["used_bytes"])
        self.temperature_c = max_known(self.temperature_c, seen["temperature_c"])
        self.power_mw = max_known(self.power_mw, seen["power_mw"])
        if slowed := (seen["reasons"] or 0) & sum(SLOWDOWN_REASONS):
            self.slowed_samples += 1
            self.reasons |= slowed

    def to_json(self, interval_s: float) -> JsonObject:
        """As it stands in a record."""
        return {
            "name": self.name,
            "total_bytes": self.total_bytes,
            "before_bytes": self.before_bytes,
            "peak_bytes": self.peak_bytes,
            "busy_percent": round(self.busy_percent_sum / self.samples) if self.samples else None,
            "temperature_c": self.temperature_c,
            "power_w": None if self.power_mw is None else self.power_mw // 1000,
            "throttled_s": round(self.slowed_samples * interval_s, 1),
            "throttled_by": slowdown_faults([self.reasons]),
        }


@dataclass(slots=True)
class PeakUsage:
    """Peaks of a program with its children: RAM, largest process, processes, shared memory."""

    ram_bytes: int | None = None
    process_bytes: int | None = None
    processes: int = 0
    shm_bytes: int | None = None
    cards: list[CardPeak] = field(default_factory=list)

    def add(self, family: list[int], shm: int | None, cards: list[JsonObject]) -> None:
        """Take one look in."""
        if family:
            self.ram_bytes = max_known(self.ram_bytes, sum(family))
            self.process_bytes = max_known(self.process_bytes, max(family))
            self.processes = max(self.processes, len(family))
        self.shm_bytes = max_known(self.shm_bytes, shm)
        for card, seen in zip(self.cards, cards, strict=False):
            card.add(seen)


def max_known(first: int | None, other: int | None) -> int | None:
    """The larger of two numbers that may be unknown."""
    return max([number for number in (first, other) if number is not None], default=None)
