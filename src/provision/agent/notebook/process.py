"""Programs that a stage starts: each leads a process group of its own, which ends with its time
limit and with Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMED_OUT = 124
NOT_STARTED = 127
_BEAT_S = 20.0


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended (124: its time was up, 127: it could not be started), and what it wrote."""  # noqa: E501

    code: int
    stdout: str
    stderr: str

    @property
    def output_tail(self) -> str:
        """The end of what it wrote, stderr first asked."""
        return (self.stderr.strip() or self.stdout.strip())[-3000:]


def run_process(
    argv: Sequence[str],
    timeout_s: float,
    environ: Mapping[str, str],
    folder: Path | None = None,
    beat: Callable[[float], None] | None = None,
) -> ProcessResult:
    """Run a program to its end; `beat` is called with the seconds so far while it takes long."""
    began = time.monotonic()
    try:
        process = _start(argv, environ, folder)
    except OSError as error:
        return ProcessResult(NOT_STARTED, "", f"{argv[0]}: {error.strerror or error}")
    try:
        while True:
            left = timeout_s - (time.monotonic() - began)
            try:
                stdout, stderr = process.communicate(timeout=max(0.0, min(left, _BEAT_S)))
                return ProcessResult(process.returncode, stdout, stderr)
            except subprocess.TimeoutExpired:
                if left <= _BEAT_S:
                    end_process_group(process)
                    stdout, stderr = process.communicate()
                    return ProcessResult(TIMED_OUT, stdout, stderr)
                if beat is not None:
                    beat(time.monotonic() - began)
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
    """Run a program to its end and hand on each line of its stdout as it comes; the answer holds
    its stderr only.
    """
    try:
        process = _start(argv, environ, folder)
    except OSError as error:
        return ProcessResult(NOT_STARTED, "", f"{argv[0]}: {error.strerror or error}")
    late = threading.Event()
    told: list[str] = []

    def too_late() -> None:
        late.set()
        end_process_group(process)

    watch = None
    try:
        watch = threading.Timer(timeout_s, too_late)
        reader = threading.Thread(
            target=lambda: told.append(process.stderr.read() if process.stderr else ""), daemon=True
        )
        watch.daemon = True
        watch.start()
        reader.start()
        for line in process.stdout or ():
            on_line(line.rstrip("\n"))
        code = process.wait()
    except BaseException:
        end_process_group(process)
        process.wait()
        raise
    finally:
        if watch is not None:
            watch.cancel()
    reader.join(5)
    return ProcessResult(TIMED_OUT if late.is_set() else code, "", "".join(told))


def end_process_group(process: subprocess.Popen[Any]) -> None:
    """End a program and all that it started: asked first, then killed."""
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
        except (ProcessLookupError, PermissionError):
            return
        ends = time.monotonic() + 2
        while kind is not signal.SIGKILL and process.poll() is None and time.monotonic() < ends:
            time.sleep(0.02)


def _start(
    argv: Sequence[str], environ: Mapping[str, str], folder: Path | None
) -> subprocess.Popen[str]:
    with _interrupts_held() as interrupted:
        process = subprocess.Popen(
            list(argv),
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    if interrupted:
        end_process_group(process)
        process.communicate()
        raise KeyboardInterrupt
    return process


@contextmanager
def _interrupts_held() -> Iterator[list[int]]:
    """Give a list that gets SIGINT in place of the process: raised inside of Popen, it would leave
    a program behind that nobody knows.
    """
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread() or not callable(
        before := signal.getsignal(signal.SIGINT)
    ):
        yield seen
        return
    signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
