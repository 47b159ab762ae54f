"""What a program is made from: a check that failed, and what stands beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

MAX_ITEMS = 5
"""How many packages, files or folders one program looks at."""


class FailedCheck(NamedTuple):
    """A check that failed, its report's readings and parts, and the expectations that were sent
    with it ({} where they are not at hand).
    """

    check: Mapping[str, Any]
    readings: Mapping[str, Any]
    document: Mapping[str, Any]
    expectations: Mapping[str, Any]

    @property
    def check_id(self) -> str:
        """The check's id, without the package that it was asked of."""
        return str(self.check.get("id")).partition(":")[0]

    @property
    def expected(self) -> Any:
        """What the check expected."""
        return self.check.get("expected")

    @property
    def observed(self) -> Any:
        """What it observed."""
        return self.check.get("observed")

    @property
    def message(self) -> str:
        """What it said."""
        return str(self.check.get("message"))

    @property
    def raised(self) -> bool:
        """Whether it failed because what it looked at raised or died, and not by a value."""
        return self.expected in ("no exception", "completes")

    @property
    def device(self) -> str:
        """Where torch computed: "cuda" or "cpu"."""
        return str(
            self.readings.get("numerics.device")
            or ("cuda" if self.readings.get("gpu.available") else "cpu")
        )

    @property
    def gpu_index(self) -> int:
        """Which of several cards it named first, as torch counts them; 0 where it named none."""
        named = re.search(r"\bon cuda:(\d{1,4})\b", self.message)
        return int(named[1]) if named else 0

    def expectation(self, part: str, name: str) -> Any:
        """Return a value of a part of the expectations, or None."""
        block = self.expectations.get(part)
        return block.get(name) if isinstance(block, Mapping) else None

    def expected_number(self, otherwise: float | None = None) -> float:
        """Return what was expected, where it is a number, else `otherwise`; raises Lacking where
        there is neither.
        """
        found = otherwise if self.raised or self.expected is None else self.expected
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise NoShortProgram("the report does not say which value was expected")
        return found


class NoShortProgram(Exception):
    """The values that the short program needs are not in the report, or it would not show what this
    report says.
    """


CaseBuilder = Callable[[FailedCheck], dict[str, Any]]
"""What gives a program's values. Raises Lacking, or whatever an odd report makes it raise."""

Programs = Mapping[str, tuple[tuple[str, CaseBuilder], ...]]
"""By a check's id: programs of templates/repro/ with their values, the best first."""
