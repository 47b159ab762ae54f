"""A series of numbers that stays short: if it grows too long, each two become the larger one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import JsonObject

MOST = 240
"""Points that a record keeps at most; twice that while they are gathered."""


class Series:
    """Samples by name, with seconds since the start; a missing name is None."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: list[JsonObject] = []
        self._each = 1
        self._seen = 0
        self._open: JsonObject = {}

    def add(self, sample: Mapping[str, Any]) -> None:
        """Take one sample in; `t` is its time."""
        self._open = _larger(self._open, sample)
        self._seen += 1
        if self._seen % self._each == 0:
            self._kept.append(self._open)
            self._open = {}
        if len(self._kept) >= 2 * self._most:
            self._kept = [
                _larger(*self._kept[index : index + 2]) for index in range(0, len(self._kept), 2)
            ]
            self._each *= 2

    def columns(self) -> dict[str, list[Any]]:
        """Return each name with its numbers, in the order of time."""
        rows = self._kept + ([self._open] if self._open else [])
        names = sorted({name for row in rows for name in row})
        return {name: [row.get(name) for row in rows] for name in names}


def _larger(first: Mapping[str, Any], other: Mapping[str, Any]) -> JsonObject:
    both = {**first}
    for name, value in other.items():
        known = both.get(name)
        both[name] = (
            value
            if known is None or name == "t" or (value is not None and value > known)
            else known
        )
    return both
