"""Running other programs so that none outlives us: own session, told to die with us, ended on
Ctrl-C.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from provision.errors import ExternalError

_PR_SET_PDEATHSIG = 1
_GRACE_S = 5
_PIPES: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
    "errors": "replace",
}
_LIBC = (
    ctypes.CDLL(None) if sys.platform == "linux" else None
)  # loaded here: between fork and exec nothing may take a lock


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended: its exit code (negative: the signal) and what it wrote."""

    code: int
    stdout: str
    stderr: str


def capture(
    argv: list[str],
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
    timeout_s: float | None = None,
) -> ProcessResult:
    """Run a program without a terminal and return what it wrote.

    It gets its own session, so that Ctrl-C reaches it through us: it is then ended before the
    interrupt goes on. When we are killed, the kernel ends it
    (Linux). Raises FileNotFoundError when there is no such program, subprocess.TimeoutExpired
    after `timeout_s`.
    """
    return _run(argv, environment, cwd, timeout_s, None)


def stream(
    argv: list[str],
    environment: Mapping[str, str],
    line: Callable[[str], None],
    *,
    timeout_s: float | None = None,
) -> ProcessResult:
    """Run a program as `capture` does and hand over each line that it writes as it comes; after
    `timeout_s` it is ended. The last 200 lines are kept.
    """
    return _run(argv, environment, None, timeout_s, line)


def run_to_completion(
    argv: list[str], environment: Mapping[str, str], *, holding: int, timeout_s: float
) -> ProcessResult:
    """Run a program whose end must not be missed, as what it is given elsewhere would be known to
    nobody: it goes on when we are interrupted or killed.

    It inherits the descriptor `holding`, whose lock thus tells that it is at work. Raises
    FileNotFoundError when there is no such program,
    subprocess.TimeoutExpired after `timeout_s`: then it is ended.
    """
    child = subprocess.Popen(
        argv, env=dict(environment), start_new_session=True, pass_fds=(holding,), **_PIPES
    )
    try:
        stdout, stderr = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _terminate_group(child)
        raise
    return ProcessResult(child.returncode, stdout, stderr)


SIGNALS_RESET_ON_EXEC = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGQUIT)
"""Signals that a program must not find ignored. Python ignores the first two for itself. A shell
ignores SIGQUIT for what a script starts in the background,
but people send it to a program that hangs, for its stack. SIGHUP and SIGINT stay as the caller
set them: `nohup` and `&` ignore them on purpose.
"""


def exec_program(argv: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by a program, `argv[0]` being its path: terminal, signals, job control
    and exit code are then the program's.

    Raises:
        OSError: the program cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    for number in SIGNALS_RESET_ON_EXEC:
        signal.signal(number, signal.SIG_DFL)
    os.execve(argv[0], argv, dict(environment))  # noqa: S606


def _run(
    argv: list[str],
    environment: Mapping[str, str],
    cwd: Path | None,
    timeout_s: float | None,
    line: Callable[[str], None] | None,
) -> ProcessResult:
    child = subprocess.Popen(
        argv,
        env=dict(environment),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if line is None else subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
    )
    try:
        if line is None:
            stdout, stderr = child.communicate(timeout=timeout_s)
            return ProcessResult(child.returncode, stdout, stderr)
        return _follow(child, line, timeout_s)
    except BaseException:
        _terminate_group(child)
        raise


def _follow(
    child: subprocess.Popen[str], line: Callable[[str], None], timeout_s: float | None
) -> ProcessResult:
    alarm = threading.Timer(timeout_s, _terminate_group, (child,)) if timeout_s else None
    if alarm is not None:
        alarm.start()
    seen: deque[str] = deque(maxlen=200)
    try:
        for text in child.stdout or ():
            seen.append(text)
            line(text.rstrip("\n"))
        return ProcessResult(child.wait(), "".join(seen), "")
    finally:
        if alarm is not None:
            alarm.cancel()


def _terminate_group(child: subprocess.Popen[str]) -> None:
    """End a child and all of its group: a grandchild that does not heed SIGTERM would keep our pipe
    open, and work on.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _die_with_parent() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def program_not_found(name: str) -> ExternalError:
    """Return the error that tells what stands under a name which is no program, and what to write."""  # noqa: E501
    if Path(name).is_dir():
        return ExternalError(f"cannot start {name}", why="it is a folder", hint="name a program")
    if "/" in name and Path(name).exists():
        return ExternalError(
            f"cannot start {name}",
            why="it is a file that may not be executed",
            hint=f"chmod +x {shlex.quote(name)}, or name its interpreter first",
        )
    hint = "check its spelling, or add its package"
    if Path(name).is_file():
        hint = (
            "for the file of that name here write "
            f"{f'python {shlex.quote(name)}' if name.endswith('.py') else shlex.quote(f'./{name}')}"
        )
    return ExternalError(
        f"no program called {name}",
        why="it is neither in the environment nor on the PATH",
        hint=hint,
    )
