"""Starts other programs so that none outlives us, and lists those that run in an environment."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from provision.adapters.diagnostic_log import format_argv, log
from provision.agent.core.process import ProcessResult

_PR_SET_PDEATHSIG = 1
_GRACE_S = 5
_KEPT_LINES = 200
_PIPES: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
    "errors": "replace",
    "start_new_session": True,
}
# Loaded here: between fork and exec nothing may take a lock.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_piped: set[subprocess.Popen[str]] = set()
"""The programs that threads of this process wait for."""
SIGNALS_RESET_ON_EXEC = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGQUIT)
"""Signals that a program must not find ignored.

Python ignores the first two for itself. A shell ignores SIGQUIT for what a script starts in the
background, but people send it to a program that hangs, for its stack. SIGHUP and SIGINT stay as the
caller set them: `nohup` and `&` ignore them on purpose.
"""


_LIMIT = 300
USE_FOLDER = "use"
"""In `.provision`, next to `envs`: use/ENVIRONMENT/PID."""


def capture(
    argv: list[str],
    environment: Mapping[str, str],
    cwd: Path | None = None,
    *,
    timeout_s: float | None = None,
    is_brief: bool = False,
) -> ProcessResult:
    """Run a program without a terminal and return its output. Blocks until it ends.

    Ctrl-C ends the program before the interrupt goes on; the kernel ends it when we are killed
    (Linux). `is_brief` is for a program that changes nothing and soon ends by itself: the kernel
    does not end it, so that Python can start it without a copy of this process (3 ms of CPU).

    Raises:
        FileNotFoundError: the program does not exist.
        subprocess.TimeoutExpired: it was ended after `timeout_s` seconds.
    """
    with run_meanwhile(argv, environment, cwd, timeout_s=timeout_s, is_brief=is_brief) as wait:
        return wait()


@contextlib.contextmanager
def run_meanwhile(
    argv: list[str],
    environment: Mapping[str, str],
    cwd: Path | None = None,
    *,
    timeout_s: float | None = None,
    is_brief: bool = False,
) -> Iterator[Callable[[], ProcessResult]]:
    """Run a program as `capture` does, and call the returned function to wait for its output.

    The program is ended if the body raises.
    """
    start = time.monotonic()
    child = _start_piped(argv, environment, cwd=cwd, dies_with_us=not is_brief)
    _piped.add(child)

    def wait() -> ProcessResult:
        stdout, stderr = child.communicate(timeout=timeout_s)
        return _finish(argv, start, ProcessResult(child.returncode, stdout, stderr))

    try:
        yield wait
    except BaseException:
        terminate_group(child)
        raise
    finally:
        _piped.discard(child)


def stream(
    argv: list[str],
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    cwd: Path | None = None,
    *,
    timeout_s: float | None = None,
) -> ProcessResult:
    """Run a program as `capture` does, and pass each line of its output on as it comes.

    The program is ended after `timeout_s` seconds. The result has its last 200 lines.
    """
    start = time.monotonic()
    child = _start_piped(argv, environment, stderr=subprocess.STDOUT, cwd=cwd)
    timer = threading.Timer(timeout_s, terminate_group, (child,)) if timeout_s else None
    lines: deque[str] = deque(maxlen=_KEPT_LINES)
    try:
        if timer is not None:
            timer.start()
        for line in child.stdout or ():
            lines.append(line)
            on_line(line.rstrip("\n"))
        result = ProcessResult(child.wait(), "".join(lines), "")
    except BaseException:
        terminate_group(child)
        raise
    finally:
        _piped.discard(child)
        if timer is not None:
            timer.cancel()
    return _finish(argv, start, result)


def run_to_completion(
    argv: list[str], environment: Mapping[str, str], *, holding: int, timeout_s: float
) -> ProcessResult:
    """Run a program that goes on when we are interrupted or killed.

    For a request whose answer must not be lost. The program inherits the descriptor `holding`,
    whose file lock thus shows that it runs.

    Raises:
        FileNotFoundError: the program does not exist.
        subprocess.TimeoutExpired: it was ended after `timeout_s` seconds.
    """
    start = time.monotonic()
    child = _start_piped(argv, environment, dies_with_us=False, pass_fds=(holding,))
    try:
        stdout, stderr = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        terminate_group(child)
        raise
    return _finish(argv, start, ProcessResult(child.returncode, stdout, stderr))


def exec_program(argv: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by a program: terminal, job control and exit code are then its own.

    Raises:
        OSError: the program cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    for number in SIGNALS_RESET_ON_EXEC:
        signal.signal(number, signal.SIG_DFL)
    os.execve(argv[0], argv, dict(environment))  # noqa: S606


def start_program(
    argv: list[str],
    environment: Mapping[str, str],
    *,
    dies_with_us: bool = True,
    signal_mask: set[int] | None = None,
    **options: Any,
) -> subprocess.Popen[Any]:
    """Start a program: the only place that does.

    Args:
        argv: the program and its arguments.
        environment: all of its variables.
        dies_with_us: let the kernel kill it when this process ends (Linux).
        signal_mask: the signals that it starts with blocked; None keeps ours.
        options: further arguments of subprocess.Popen.

    Raises:
        OSError: the program cannot be started.
    """

    def prepare_child() -> None:
        if dies_with_us and _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if signal_mask is not None:
            signal.signal(signal.SIGQUIT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask)

    needs_preparation = signal_mask is not None or (dies_with_us and _LIBC is not None)
    return subprocess.Popen(
        argv,
        env=dict(environment),
        preexec_fn=prepare_child if needs_preparation else None,  # noqa: PLW1509
        **options,
    )


def terminate_piped_programs() -> None:
    """End the programs that other threads wait for, as an interrupt would in each of them.

    A program that must not be interrupted (`run_to_completion`) goes on.
    """
    for child in list(_piped):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGTERM)


def terminate_group(child: subprocess.Popen[Any]) -> None:
    """End a child and its process group: SIGTERM, five seconds, SIGKILL.

    A grandchild that ignores SIGTERM would otherwise keep our pipe open, and go on.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _start_piped(
    argv: list[str], environment: Mapping[str, str], **options: Any
) -> subprocess.Popen[str]:
    log.info("run %s", format_argv(argv))
    child: subprocess.Popen[str] = start_program(argv, environment, **{**_PIPES, **options})
    if options.get("dies_with_us", True):
        _piped.add(child)
    return child


def _finish(argv: list[str], start: float, result: ProcessResult) -> ProcessResult:
    seconds = time.monotonic() - start
    log.debug("exit code %d after %.2f s: %s", result.code, seconds, argv[0])
    return result


def mark_in_use(environment: Path, program: str) -> None:
    """Mark an environment as used while this process or a program that it starts lives.

    Marks of dead processes are removed. If the mark cannot be written, the program runs without it.
    """
    folder = _use_folder(environment)
    path = folder / str(os.getpid())
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_linked(folder):
            return
        for mark in _list_marks(folder):
            _user_of(mark, remove=True)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                break
            os.close(descriptor)  # another program removed it meanwhile
        os.write(descriptor, f"process {os.getpid()}: {program}".encode()[:_LIMIT])
    except OSError:
        return
    os.set_inheritable(descriptor, True)


def list_users(environment: Path) -> tuple[str, ...]:
    """Return the programs that use an environment, as "process PID: PROGRAM"; changes nothing."""
    users = (_user_of(mark) for mark in _list_marks(_use_folder(environment)))
    return tuple(user for user in users if user)


def _user_of(mark: Path, *, remove: bool = False) -> str:
    """Return the living program of a mark, else "", and then the mark is removed if requested."""
    access = os.O_RDWR if remove else os.O_RDONLY
    try:
        handle = os.open(mark, access | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:  # a link, or gone meanwhile
        return ""
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if remove else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        if remove:
            mark.unlink(missing_ok=True)
    except BlockingIOError:
        return os.pread(handle, _LIMIT, 0).decode("utf-8", "replace") or f"process {mark.name}"
    finally:
        os.close(handle)
    return ""


def _list_marks(folder: Path) -> list[Path]:
    """Return the marks in a folder, none behind a link: there nothing is written or removed."""
    if _is_linked(folder) or not folder.is_dir():
        return []
    return sorted(mark for mark in folder.iterdir() if mark.name.isdigit())


def _is_linked(folder: Path) -> bool:
    return folder.is_symlink() or folder.parent.is_symlink()


def _use_folder(environment: Path) -> Path:
    return environment.parent.parent / USE_FOLDER / environment.name
