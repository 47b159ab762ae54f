"""Runs stages in a process of their own and tells how each ended, whatever happened to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.process import kill_process_group
from .model import JsonObject
from .redactor import Redactor
from .stage import StageProgress

_TAIL_READ, _TAIL_KEPT = 65536, 2048
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class StageRun:
    """The end of a stage: exit code or signal, seconds, peak memory in MB, redacted output."""

    name: str
    exit: int | None
    signal: str | None
    wall_s: float
    cpu_s: float
    maxrss_mb: float
    timed_out: bool
    tail: str

    @property
    def how(self) -> str:
        """The end of the stage as text."""
        if self.timed_out:
            return f"did not end within {self.wall_s:.0f} s"
        return f"ended by {self.signal}" if self.signal else f"ended with exit code {self.exit}"

    def to_json(self) -> JsonObject:
        """Return the report's entry: hundredths of a second and whole MB, as far as they repeat."""
        return {
            **{field: getattr(self, field) for field in self.__slots__},
            "wall_s": round(self.wall_s, 2),
            "cpu_s": round(self.cpu_s, 2),
            "maxrss_mb": round(self.maxrss_mb),
        }


@dataclass(frozen=True, slots=True)
class StageTask:
    """One stage of a process: its time limit and the files it writes."""

    name: str
    timeout_s: float
    progress_file: Path
    log: Path


@dataclass(frozen=True, slots=True)
class _ExitStatus:
    code: int
    cpu_s: float
    maxrss_mb: float


class StageProcess:
    """A process that runs several stages; `started` and `ended` are called for each.

    `deadline` is the moment (monotonic clock) at which the whole verification ends. The process
    leads a group of its own, which is killed when a stage runs out of time, when the process
    ended, and when we are interrupted. A stage has started when its fragment exists.
    """

    def __init__(
        self,
        legs: Sequence[StageTask],
        deadline: float,
        redactor: Redactor,
        started: Callable[[str], None],
        ended: Callable[[StageRun], None],
    ) -> None:
        self._legs = legs
        self._deadline = deadline
        self._redactor = redactor
        self._started, self._ended = started, ended
        self._runs: list[StageRun] = []
        self._leg_began = 0.0
        self._timed_out = False

    def run(self, command: Sequence[str], environ: Mapping[str, str]) -> list[StageRun]:
        """Run the command to its end; return a run for every stage that began.

        If the process died, the last of them says how.
        """
        self._begin_leg()
        with open(self._legs[0].log, "wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environ),
                start_new_session=True,
            )
            try:
                ending = self._follow(process)
            finally:
                kill_process_group(process)
                process.wait()
        while self._next_has_begun():
            self._leg_is_over()
        self._close(self._last_run(ending))
        return self._runs

    def _follow(self, process: subprocess.Popen[bytes]) -> _ExitStatus:
        while True:
            ending = _ending(process)
            if ending is not None:
                return ending
            if self._next_has_begun():
                self._leg_is_over()
            elif (
                time.monotonic() > min(self._leg_began + self._leg.timeout_s, self._deadline)
                and not self._timed_out
            ):
                self._timed_out = True
                kill_process_group(process)
            time.sleep(_PAUSE_S)

    @property
    def _leg(self) -> StageTask:
        return self._legs[len(self._runs)]

    def _next_has_begun(self) -> bool:
        following = len(self._runs) + 1
        return following < len(self._legs) and self._legs[following].progress_file.exists()

    def _begin_leg(self) -> None:
        self._leg_began = time.monotonic()
        self._started(self._leg.name)

    def _leg_is_over(self) -> None:
        leg, fragment = self._leg, StageProgress.load(self._leg.progress_file)
        wall = time.monotonic() - self._leg_began
        self._close(
            StageRun(
                leg.name,
                0,
                None,
                wall,
                fragment.cpu_s,
                fragment.maxrss_mb,
                False,
                _tail(leg.log, self._redactor),
            )
        )
        self._begin_leg()

    def _last_run(self, ending: _ExitStatus) -> StageRun:
        leg = self._leg
        return StageRun(
            name=leg.name,
            exit=ending.code if ending.code >= 0 else None,
            signal=_signal_name(-ending.code) if ending.code < 0 else None,
            wall_s=time.monotonic() - self._leg_began,
            cpu_s=max(0.0, ending.cpu_s - sum(run.cpu_s for run in self._runs)),
            maxrss_mb=ending.maxrss_mb,
            timed_out=self._timed_out,
            tail=_tail(leg.log, self._redactor),
        )

    def _close(self, run: StageRun) -> None:
        self._runs.append(run)
        self._ended(run)


def _ending(process: subprocess.Popen[bytes]) -> _ExitStatus | None:
    if not hasattr(os, "wait4"):
        code = process.poll()
        return None if code is None else _ExitStatus(code, 0.0, 0.0)
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    # Linux counts ru_maxrss in KiB, macOS in bytes.
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return _ExitStatus(process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(log: Path, redactor: Redactor) -> str:
    try:
        with open(log, "rb") as output:
            output.seek(0, os.SEEK_END)
            output.seek(max(0, output.tell() - _TAIL_READ))
            text = output.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    # Redacting comes before cutting: half a secret would not be recognised.
    return redactor.text(text).strip().encode("utf-8")[-_TAIL_KEPT:].decode("utf-8", "ignore")
