"""Input of the judges, and constructors of judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from ..expectations import Expectations
from ..model import Judgement, ObservedValues, Status, Threshold

_GIB = 1024**3
_MIB = 1024**2
RESTART_OR_REPLACE = "restart the machine; if the problem persists, use another machine"
END_OTHER_PROGRAM = "end the other program or notebook kernel (nvidia-smi lists it)"


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """One check to judge: expectations, readings, and the package of a repeated check."""

    expected: Expectations
    seen: ObservedValues
    subject: str | None = None

    def __getitem__(self, key: str) -> Any:
        """Return a reading that the check's observer always makes."""
        return self.seen[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a reading that may be absent."""
        return self.seen.get(key, default)


Judge = Callable[[JudgeInput], Judgement]


def passes(
    message: str, expected: Any, observed: Any, threshold: Threshold | None = None
) -> Judgement:
    """Return a pass; `observed` may be a word for absence ("none")."""
    return Judgement(Status.PASS, message, expected, observed, threshold=threshold)


def fails(
    message: str,
    expected: Any,
    observed: Any,
    cause: str,
    fix: str,
    threshold: Threshold | None = None,
) -> Judgement:
    """The promise is broken; cause and fix are what a person needs next."""
    return Judgement(Status.FAIL, message, expected, observed, cause, fix, threshold)


def warns(
    message: str,
    expected: Any,
    observed: Any,
    cause: str,
    fix: str,
    threshold: Threshold | None = None,
) -> Judgement:
    """Nothing is broken, but a person should know."""
    return Judgement(Status.WARN, message, expected, observed, cause, fix, threshold)


def skipped(reason: str, observed: Any = None) -> Judgement:
    """The check does not apply here, and why."""
    return Judgement(Status.SKIP, reason, None, observed)


def unknown(reason: str, expected: Any = None, fix: str | None = None) -> Judgement:
    """It could not be observed, and why; for a required check this is never green."""
    return Judgement(Status.UNKNOWN, reason, expected, None, fix=fix)


def format_number(number: float) -> str:
    """A measured number in three digits, and never as a power of ten: "0.281", "49.8", "4300"."""
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def has_fallen(first: Any, last: Any, share: float) -> bool:
    """Return whether a loss fell below a share of its first value; False for NaN."""
    return is_number(first) and is_number(last) and last < share * first


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a measured value is a number; reports have NaN as text."""
    return isinstance(value, (int, float))


def describe_unset(variables: Mapping[str, str]) -> str:
    """Return how to unset variables, each by its harmful part.

    The rest of LD_LIBRARY_PATH is how the driver is found, and stays.
    """
    whole = [name for name in variables if name != "LD_LIBRARY_PATH"]
    return "; ".join(
        [
            *([f"unset {' '.join(whole)}"] if whole else []),
            *(
                f"remove {part} from {name}"
                for name, part in variables.items()
                if name not in whole
            ),
        ]
    )


def format_list(items: list[str], most: int = 5, total: int | None = None) -> str:
    """Return the first items and the number of further ones; `total` if `items` lacks some."""
    more = (total or len(items)) - most
    return "; ".join(items[:most]) + (f"; and {more} more" if more > 0 else "")
