"""What is promised of a speed, and whether what was measured keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from benchmarks.timing import Cost


class Figure(StrEnum):
    """The number that a promise is about, made of our cost and the peer's."""

    CPU_RATIO = "x CPU"
    WALL_RATIO = "x wall"
    CPU_ADDED = "s CPU more"
    WALL_ADDED = "s wall more"
    CPU = "s CPU"
    WALL = "s wall"


@dataclass(frozen=True, slots=True)
class Promise:
    """A row of the table: what is compared, with which peer ("" for none), by which figure, and its
    bound (None: printed for information).
    """

    name: str
    what: str
    peer: str
    figure: Figure
    bound: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured for a promise; `trouble` says why nothing was."""

    promise: Promise
    ours: Cost | None = None
    peer: Cost | None = None
    trouble: str = ""

    @property
    def value(self) -> float | None:
        """The promise's figure; None when nothing was measured."""
        if self.ours is None:
            return None
        peer = self.peer or Cost(0, 0)
        match self.promise.figure:
            case Figure.CPU_RATIO:
                return self.ours.cpu_s / peer.cpu_s
            case Figure.WALL_RATIO:
                return self.ours.wall_s / peer.wall_s
            case Figure.CPU_ADDED:
                return self.ours.cpu_s - peer.cpu_s
            case Figure.WALL_ADDED:
                return self.ours.wall_s - peer.wall_s
            case Figure.CPU:
                return self.ours.cpu_s
            case Figure.WALL:
                return self.ours.wall_s
            case _ as never:
                assert_never(never)

    @property
    def holds(self) -> bool | None:
        """Whether the bound is kept; None when there is no bound, or nothing was measured."""
        if self.value is None or self.promise.bound is None:
            return None
        return self.value <= self.promise.bound


def exit_code(outcomes: list[Outcome]) -> int:
    """1 when a bound does not hold, else 2 when something could not be measured, else 0."""
    if any(outcome.holds is False for outcome in outcomes):
        return 1
    return 2 if any(outcome.ours is None for outcome in outcomes) else 0


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as text, one line a promise; a cost is written as CPU / wall seconds."""
    rows = [
        ("name", "ours", "CPU/wall s", "peer", "CPU/wall s", "figure", "bound", "holds"),
        *(_row(outcome) for outcome in outcomes),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    troubles = [
        f"\n{outcome.promise.name} was not measured: {outcome.trouble}"
        for outcome in outcomes
        if outcome.ours is None
    ]
    return "\n".join([*lines, *troubles]) + "\n"


def _row(outcome: Outcome) -> tuple[str, ...]:
    promise = outcome.promise
    figure = (
        "-"
        if outcome.value is None
        else f"{outcome.value:.{2 if outcome.value >= 0.1 else 4}f} {promise.figure}"
    )
    bound = "-" if promise.bound is None else f"<= {promise.bound:g}"
    holds = {True: "yes", False: "NO", None: "-"}[outcome.holds]
    return (
        promise.name,
        promise.what,
        _written(outcome.ours),
        promise.peer or "-",
        _written(outcome.peer),
        figure,
        bound,
        holds,
    )


def _written(cost: Cost | None) -> str:
    return "-" if cost is None else f"{cost.cpu_s:.3f}/{cost.wall_s:.3f}"
