"""The process that samples a watched program each second and writes the record.

It ends with the program, or with whoever started it.

Its standard input has three JSON objects, one a line: the run, the program's pid, its end.
"""

from __future__ import annotations

import json
import os
import selectors
import sys
import time
from pathlib import Path
from typing import Any

from ...core.files import write_atomically
from ..checks.driver import slowdown_faults
from ..model import JsonObject
from ..observing.resource_usage import (
    CardSampler,
    container_memory,
    machine_ram_bytes,
    process_tree_memory,
    shared_memory_usage,
)
from ..redactor import Redactor
from ..report_json import canonical_digest, to_canonical_json
from . import SCHEMA
from .peaks import CardPeak, PeakUsage, max_known
from .series import Series

INTERVAL_S = 1.0
_SAVE_EACH = 30
_KEPT_RECORDS = 20
_LONGEST = 6000


def main() -> int:
    """Watch one program; nobody reads the exit code."""
    messages = _JsonLines()
    about = messages.wait()
    if about is None:
        return 2
    watch = _RunMonitor(about)
    started = messages.wait()
    if started is None:
        return 2
    watch.pid = started["pid"]
    tick = time.monotonic()
    while (ended := messages.poll(max(0.0, tick - time.monotonic()))) is _NOTHING:
        if time.monotonic() >= tick:
            watch.take_sample()
            tick = max(tick + INTERVAL_S, time.monotonic())
    watch.finish(ended if isinstance(ended, dict) else None)
    return 0


_NOTHING: Any = object()


class _JsonLines:
    """Lines of JSON from standard input, with a limit of waiting."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ)
        self._buffer = b""

    def wait(self) -> JsonObject | None:
        """The next object; None at the end."""
        while (word := self.poll(None)) is _NOTHING:
            pass
        return word if isinstance(word, dict) else None

    def poll(self, limit_s: float | None) -> Any:
        """The next object, None at the end, _NOTHING when none came in time."""
        if b"\n" not in self._buffer:
            if not self._selector.select(limit_s):
                return _NOTHING
            part = os.read(0, 65536)
            if not part:
                return None
            self._buffer += part
        line, separator, rest = self._buffer.partition(b"\n")
        if not separator:
            return _NOTHING
        self._buffer = rest
        return json.loads(line)


class _RunMonitor:
    """One run under watch."""

    def __init__(self, about: JsonObject) -> None:
        self.about = about
        self.pid = 0
        self._out = Path(about["out"])
        self._redactor = Redactor.of(os.environ, about["secrets"])
        self._began = time.monotonic()
        self._cards = CardSampler()
        self._before = container_memory()
        self._shm = shared_memory_usage()
        names = ("name", "total_bytes", "used_bytes")
        cards = [CardPeak(*(card[name] for name in names)) for card in self._cards.sample()]
        self._peaks = PeakUsage(cards=cards)
        self._series = Series()
        self._looks = 0

    def take_sample(self) -> None:
        """Take one sample; each half minute the record is written, in case the machine dies."""
        members, shm = process_tree_memory(self.pid), shared_memory_usage()
        cards = self._cards.sample()
        used = max(0, shm[0] - self._shm[0]) if shm and self._shm else None
        self._peaks.add(members, used, cards)
        self._series.add(
            {
                "t": round(time.monotonic() - self._began, 1),
                "ram_bytes": sum(members),
                "shm_bytes": used,
                **_flat(cards),
            }
        )
        self._looks += 1
        if self._looks % _SAVE_EACH == 0:
            self._write(None)

    def finish(self, ended: JsonObject | None) -> None:
        """Write the record of a run with this end, None if it is unknown."""
        self._write(ended)
        for old in sorted(self._out.parent.glob("*.json"))[:-_KEPT_RECORDS]:
            old.unlink(missing_ok=True)

    def _write(self, ended: JsonObject | None) -> None:
        # The kernel reports the largest process exactly, between two samples too.
        self._peaks.process_bytes = max_known(
            self._peaks.process_bytes, (ended or {}).get("largest_bytes")
        )
        self._peaks.ram_bytes = max_known(self._peaks.ram_bytes, self._peaks.process_bytes)
        document = self._document(ended)
        document["digest"] = canonical_digest(document)
        write_atomically(self._out, to_canonical_json(document) + "\n")

    def _document(self, ended: JsonObject | None) -> JsonObject:
        after = container_memory()
        usage = os.times()
        return {
            "schema": SCHEMA,
            "tool": self.about["tool"],
            "subject": self.about["subject"],
            "program": self._redactor.tree(self.about["program"]),
            "ended": {
                **_ending(ended, self._before["kills"], after["kills"]),
                "seconds": round((ended or {}).get("seconds") or time.monotonic() - self._began, 2),
            },
            "limits": {
                "ram_bytes": machine_ram_bytes(),
                "container_bytes": after["limit_bytes"],
                "shm_bytes": self._shm[1] if self._shm else None,
            },
            "peaks": {
                "ram_bytes": self._peaks.ram_bytes,
                "process_bytes": self._peaks.process_bytes,
                "processes": self._peaks.processes,
                "shm_bytes": self._peaks.shm_bytes,
                "container_bytes": _risen(self._before["peak_bytes"], after["peak_bytes"]),
            },
            "cards": [card.to_json(INTERVAL_S) for card in self._peaks.cards],
            "monitor": {
                "interval_s": INTERVAL_S,
                "looks": self._looks,
                "cpu_s": round(usage.user + usage.system, 2),
                "nvml_error": self._cards.error,
            },
            "series": self._series.columns(),
            "torch": _notes(Path(self.about["notes"]), "torch", self._redactor),
            "arrays": self._largest("arrays"),
            "tensors": self._largest("tensors"),
        }

    def _largest(self, name: str) -> list[JsonObject]:
        """Return the rows of the process whose arrays, or tensors, are the largest."""
        notes = _notes(Path(self.about["notes"]), name, self._redactor)
        of_processes: list[list[JsonObject]] = [note[name] for note in notes]
        return max(of_processes, key=lambda rows: sum(row["bytes"] for row in rows), default=[])


def _ending(ended: JsonObject | None, before: int | None, after: int | None) -> JsonObject:
    """Return exit code, signal, and the processes that were killed for memory in the meantime."""
    ending = ended or {"code": None, "signal": None}
    kills = None if before is None or after is None else after - before
    return {"code": ending["code"], "signal": ending["signal"], "memory_kills": kills}


def _risen(before: int | None, after: int | None) -> int | None:
    # A peak that stood before the run is that of another one.
    return after if after is not None and (before is None or after > before) else None


def _flat(cards: list[JsonObject]) -> JsonObject:
    readings: JsonObject = {}
    for index, card in enumerate(cards):
        reasons = card["reasons"]
        readings |= {
            f"card{index}_{name}": card[name]
            for name in ("used_bytes", "busy_percent", "temperature_c")
        }
        readings[f"card{index}_power_w"] = (
            None if card["power_mw"] is None else card["power_mw"] // 1000
        )
        readings[f"card{index}_throttled"] = (
            None if reasons is None else int(bool(slowdown_faults([reasons])))
        )
    return readings


def _notes(folder: Path, name: str, redactor: Redactor) -> list[JsonObject]:
    notes = []
    for file in sorted(folder.glob(f"{name}-*.json")):
        try:
            note = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(note, dict) and len(to_canonical_json(note)) < 16 * _LONGEST:
            note.pop("pid", None)
            notes.append(redactor.tree(note))
    return notes[:8]


if __name__ == "__main__":
    sys.exit(main())
