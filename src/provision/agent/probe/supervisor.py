"""Runs stages in their own process and returns how each ended, whatever happened to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.process import kill_process_group
from .model import Environ, JsonObject
from .redactor import Redactor
from .stage import StageProgress, peak_memory_mb

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


class StageProcess:
    """A process that runs several stages; `started` and `ended` are called for each.

    `deadline` is the moment (monotonic clock) at which the whole verification ends. The process
    leads its own group, which is killed when a stage runs out of time, when the process
    ended, and when we are interrupted. A stage has started when its progress file exists.
    """

    def __init__(
        self,
        tasks: Sequence[StageTask],
        deadline: float,
        redactor: Redactor,
        started: Callable[[str], None],
        ended: Callable[[StageRun], None],
    ) -> None:
        self._tasks, self._deadline, self._redactor = tasks, deadline, redactor
        self._started, self._ended = started, ended
        self._runs: list[StageRun] = []
        self._task_began = 0.0
        self._timed_out = False

    def run(self, command: Sequence[str], environ: Environ) -> list[StageRun]:
        """Run the command to its end; return a run for every stage that began.

        If the process died, the last of them has the exit code or the signal.
        """
        self._begin_task()
        with open(self._tasks[0].log, "wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environ),
                start_new_session=True,
            )
            try:
                code, cpu_s, maxrss_mb = self._follow(process)
            finally:
                kill_process_group(process)
                process.wait()
        while self._next_has_begun():
            self._end_task()
        self._close(code, max(0.0, cpu_s - sum(run.cpu_s for run in self._runs)), maxrss_mb)
        return self._runs

    def _follow(self, process: subprocess.Popen[bytes]) -> tuple[int, float, float]:
        while (ending := _ending(process)) is None:
            limit = min(self._task_began + self._task.timeout_s, self._deadline)
            if self._next_has_begun():
                self._end_task()
            elif time.monotonic() > limit and not self._timed_out:
                self._timed_out = True
                kill_process_group(process)
            time.sleep(_PAUSE_S)
        return ending

    @property
    def _task(self) -> StageTask:
        return self._tasks[len(self._runs)]

    def _next_has_begun(self) -> bool:
        following = len(self._runs) + 1
        return following < len(self._tasks) and self._tasks[following].progress_file.exists()

    def _begin_task(self) -> None:
        self._task_began = time.monotonic()
        self._started(self._task.name)

    def _end_task(self) -> None:
        progress = StageProgress.load(self._task.progress_file)
        self._close(0, progress.cpu_s, progress.maxrss_mb)
        self._begin_task()

    def _close(self, code: int, cpu_s: float, maxrss_mb: float) -> None:
        run = StageRun(
            name=self._task.name,
            exit=code if code >= 0 else None,
            signal=_signal_name(-code) if code < 0 else None,
            wall_s=time.monotonic() - self._task_began,
            cpu_s=cpu_s,
            maxrss_mb=maxrss_mb,
            timed_out=self._timed_out,
            tail=_tail(self._task.log, self._redactor),
        )
        self._runs.append(run)
        self._ended(run)


def _ending(process: subprocess.Popen[bytes]) -> tuple[int, float, float] | None:
    """Return exit code, CPU seconds and peak memory in MB; None while the process runs."""
    if not hasattr(os, "wait4"):
        code = process.poll()
        return None if code is None else (code, 0.0, 0.0)
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, peak_memory_mb(usage)


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
