"""A failed check with the report and the expectations that its program is made from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple


class NoShortProgram(Exception):
    """The report lacks the values of a short program, or the program would not show the failure."""


class FailedCheck(NamedTuple):
    """A row of a report's checks, its readings by key, its proof, and the expectations or {}."""

    check: Mapping[str, Any]
    readings: Mapping[str, Any]
    proof: str
    expectations: Mapping[str, Any]

    @property
    def check_id(self) -> str:
        """The check's id, without a package."""
        return str(self.check.get("id")).partition(":")[0]

    @property
    def expected(self) -> Any:
        """The value that the check expected."""
        return self.check.get("expected")

    @property
    def message(self) -> str:
        """The check's message."""
        return str(self.check.get("message"))

    @property
    def raised(self) -> bool:
        """True if the check failed because its subject raised or died, not by a value."""
        return self.expected in ("no exception", "completes")

    @property
    def device(self) -> str:
        """The device that torch computed on: "cuda" or "cpu"."""
        available = "cuda" if self.readings.get("gpu.available") else "cpu"
        return str(self.readings.get("numerics.device") or available)

    @property
    def gpu_index(self) -> int:
        """The first card that the message names, as torch counts them; 0 if it names none."""
        match = re.search(r"\bon cuda:(\d{1,4})\b", self.message)
        return int(match[1]) if match else 0

    def expectation(self, part: str, name: str) -> Any:
        """Return a value of a part of the expectations, or None."""
        block = self.expectations.get(part)
        return block.get(name) if isinstance(block, Mapping) else None

    def expected_number(self, default: float) -> float:
        """Return the number that was expected, or `default` if the check expected no value.

        Raises:
            NoShortProgram: the expected value is not a number.
        """
        number = default if self.raised or self.expected is None else self.expected
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise NoShortProgram("the report does not say which value was expected")
        return number
