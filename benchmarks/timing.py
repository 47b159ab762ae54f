"""How long programs take: CPU and wall of a process with all its children, two programs in turn,
medians.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


class Unmeasured(Exception):
    """A program that was to be timed did not do its work: nothing can be said about the promise."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Resources of a run, in seconds: wall clock, and CPU (user and system, of the process and
    every child it waited for).
    """

    wall_s: float
    cpu_s: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)


@dataclass(frozen=True, slots=True)
class Call:
    """One program to run: its words, variables and folder, and the exit codes that mean it did its
    work.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path | None = None
    good: tuple[int, ...] = (0,)


Subject = Callable[[], Cost]
"""Does one side's work once and returns its cost; what it prepares beforehand is not in the cost."""  # noqa: E501


def cost(call: Call) -> Cost:
    """Run a program to its end and return what it took; raises Unmeasured with its last words when
    it failed.
    """
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen(
            call.argv,
            env=dict(call.environment),
            cwd=call.cwd,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in call.good:
            said.seek(0)
            words = said.read().decode("utf-8", "replace").strip()[-1500:]
            raise Unmeasured(
                f"{' '.join(call.argv)[:200]}: exit code {process.returncode}\n{words}"
            )
    return Cost(wall_s, usage.ru_utime + usage.ru_stime)


def total(calls: Iterable[Call]) -> Cost:
    """Run programs one after the other and return the sum."""
    return sum((cost(call) for call in calls), Cost(0, 0))


def alternate(ours: Subject, peer: Subject, rounds: int) -> tuple[Cost, Cost]:
    """Run both sides in turn, first once unmeasured (bytecode, caches), and return the medians; who
    begins changes with every round.
    """
    ours()
    peer()
    first: list[Cost] = []
    second: list[Cost] = []
    for number in range(rounds):
        if number % 2:
            second.append(peer())
            first.append(ours())
        else:
            first.append(ours())
            second.append(peer())
    return median(first), median(second)


def repeat(ours: Subject, rounds: int) -> Cost:
    """Run one side, first once unmeasured, and return the medians."""
    ours()
    return median([ours() for _ in range(rounds)])


def median(costs: list[Cost]) -> Cost:
    """Return the median of wall and of CPU, each by itself."""
    return Cost(
        statistics.median(one.wall_s for one in costs),
        statistics.median(one.cpu_s for one in costs),
    )
