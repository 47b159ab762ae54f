"""Programs in new process groups, which are stopped at a time limit and by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMED_OUT = 124
NOT_STARTED = 127
_HEARTBEAT_S = 20.0
_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""
_GRACE_S = 2.0
"""Our choice: seconds that a group gets after each signal but the last."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """Exit code of a program (`TIMED_OUT`, `NOT_STARTED`) and all that it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def output_tail(self) -> str:
        """The end of stderr, or of stdout if stderr is empty."""
        return (self.stderr.strip() or self.stdout.strip())[-3000:]


def run_process(
    argv: Sequence[str],
    timeout_s: float,
    environ: Mapping[str, str],
    folder: Path | None = None,
    heartbeat: Callable[[float], None] | None = None,
    *,
    stdin: str = "",
    **options: Any,
) -> ProcessResult:
    """Run a program to its end; at the time limit its group is ended.

    Args:
        argv: program and arguments.
        timeout_s: seconds that it may take.
        environ: all of its variables.
        folder: its working folder; None means that of this process.
        heartbeat: called with the seconds so far, every 20 s.
        stdin: text that it reads; "" means an empty stream.
        options: further arguments of `subprocess.Popen`, such as `user` and `umask`.
    """
    began = time.monotonic()
    try:
        process = _start(argv, environ, folder, pipe_stdin=bool(stdin), **options)
    except OSError as error:
        return ProcessResult(NOT_STARTED, "", f"{argv[0]}: {error.strerror or error}")
    unsent: str | None = stdin or None
    try:
        while True:
            left = timeout_s - (time.monotonic() - began)
            try:
                pause = max(0.0, min(left, _HEARTBEAT_S))
                stdout, stderr = process.communicate(unsent, timeout=pause)
                return ProcessResult(process.returncode, stdout, stderr)
            except subprocess.TimeoutExpired:
                unsent = None
                if left <= _HEARTBEAT_S:
                    end_process_group(process)
                    return ProcessResult(TIMED_OUT, *process.communicate())
                if heartbeat is not None:
                    heartbeat(time.monotonic() - began)
    except BaseException:
        end_process_group(process)
        process.communicate()
        raise


def stream_process(
    argv: Sequence[str],
    on_line: Callable[[str], None],
    timeout_s: float,
    environ: Mapping[str, str],
    folder: Path | None = None,
) -> ProcessResult:
    """Run a program and call `on_line` for each line of its stdout; the result has stderr only."""
    try:
        process = _start(argv, environ, folder)
    except OSError as error:
        return ProcessResult(NOT_STARTED, "", f"{argv[0]}: {error.strerror or error}")
    timed_out = threading.Event()
    errors: list[str] = []

    def end_late() -> None:
        timed_out.set()
        end_process_group(process)

    timer = None
    try:
        timer = threading.Timer(timeout_s, end_late)
        reader = threading.Thread(
            target=lambda: errors.append(process.stderr.read() if process.stderr else ""),
            daemon=True,
        )
        timer.daemon = True
        timer.start()
        reader.start()
        for line in process.stdout or ():
            on_line(line.rstrip("\n"))
        code = process.wait()
    except BaseException:
        end_process_group(process)
        process.wait()
        raise
    finally:
        if timer is not None:
            timer.cancel()
    reader.join(5)
    return ProcessResult(TIMED_OUT if timed_out.is_set() else code, "", "".join(errors))


def end_process_group(process: subprocess.Popen[Any]) -> None:
    """End a program and all that it started: SIGINT, SIGTERM, then SIGKILL."""
    for number in (signal.SIGINT, signal.SIGTERM) if os.name == "posix" else ():
        if not _signal_group(process, number):
            return
        deadline = time.monotonic() + _GRACE_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    kill_process_group(process)


def kill_process_group(process: subprocess.Popen[Any]) -> None:
    """Kill a program and all that it started, at once."""
    if os.name == "posix":
        _signal_group(process, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends; only Linux can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _signal_group(process: subprocess.Popen[Any], number: int) -> bool:
    """Send a signal to the group that a program leads; return whether it has members left."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        return False
    return True


def _start(
    argv: Sequence[str],
    environ: Mapping[str, str],
    folder: Path | None,
    *,
    pipe_stdin: bool = False,
    **options: Any,
) -> subprocess.Popen[str]:
    with _deferred_interrupts() as interrupts:
        process: subprocess.Popen[str] = subprocess.Popen(
            list(argv),
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.PIPE if pipe_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            **options,
        )
    if interrupts:
        end_process_group(process)
        process.communicate()
        raise KeyboardInterrupt
    return process


@contextmanager
def _deferred_interrupts() -> Iterator[list[int]]:
    """Collect SIGINT in a list: raised inside of Popen, it would leave a program that runs on."""
    received: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield received
        return
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)
