"""Running a program under watch: it has our terminal, our signals go to it, its end is ours; a
process beside it records what it takes. Linux only.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import provision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.effects import MonitorRequest

_NAMES = (
    "HUP",
    "INT",
    "QUIT",
    "TERM",
    "USR1",
    "USR2",
    "ALRM",
    "CONT",
    "TSTP",
    "WINCH",
    "IO",
    "PWR",
    "VTALRM",
    "PROF",
)
_RELAYED = {getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}")}
_FROM_KERNEL = 0x80
"""si_code of a signal that the terminal made (sigaction(2)): all of its group have it already, the
program too.
"""
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PACKAGE = Path(provision.__file__).parent
_SAMPLER = (
    "import sys; sys.path.append(sys.argv[1]); from provision.agent.probe.monitor.sampler "
    "import main; sys.exit(main())"
)
_PATIENCE_S = 5.0
HOOK_FOLDER = _PACKAGE / "agent" / "probe" / "monitor" / "hook"


@dataclass(frozen=True, slots=True)
class _ExitResult:
    code: int
    largest_bytes: int
    seconds: float


def run_monitored(argv: list[str], environment: Mapping[str, str], watch: MonitorRequest) -> int:
    """Run a program, `argv[0]` being its path, and return its exit code (negative: the signal that
    ended it). Raises OSError when it cannot be started.

    A signal that a person or program sends us is sent on; one from the terminal has reached the
    program already. When it stops (Ctrl-Z), so do we.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryDirectory(prefix="provision-run-", ignore_cleanup_errors=True) as notes:
        sampler = _Sampler(watch, notes, environment)
        with _blocked_signals() as mask:
            try:
                child = _start_program(argv, _with_hook(environment, notes), mask)
            except OSError:
                sampler.close()
                raise
            sampler.send({"pid": child.pid})
            ended = _wait_for_exit(child)
            name = signal.Signals(-ended.code).name if ended.code < 0 else None
            code = ended.code if ended.code >= 0 else 128 - ended.code
            sampler.send(
                {
                    "code": code,
                    "signal": name,
                    "largest_bytes": ended.largest_bytes or None,
                    "seconds": ended.seconds,
                }
            )
            sampler.close()
    return ended.code


def exit_with_signal(number: int) -> NoReturn:
    """End as a program that this signal ended, so that whoever waits for us sees what it would have
    seen; without a core of ours.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError, ValueError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # of one that ends nothing


class _Sampler:
    """The process beside the program. It is out of the way of Ctrl-C, and nothing of it is waited
    for longer than a few seconds.
    """

    def __init__(self, watch: MonitorRequest, notes: str, environment: Mapping[str, str]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            watch.record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SAMPLER, str(_PACKAGE.parent)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                cwd="/",
                start_new_session=True,
            )
        tool = {"name": "provision", "version": provision.__version__}
        record = str(watch.record.absolute())
        self.send(
            {
                "out": record,
                "notes": notes,
                "secrets": list(watch.secrets),
                "tool": tool,
                "subject": watch.subject,
                "program": watch.program,
            }
        )

    def send(self, word: Mapping[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(json.dumps(word).encode() + b"\n")
                self._process.stdin.flush()

    def close(self) -> None:
        """Tell it that nothing more comes, and wait until it has written."""
        if self._process is None:
            return
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:  # a driver that hangs holds its asker
            self._process.kill()


@contextmanager
def _blocked_signals() -> Iterator[set[int]]:
    """Keep signals until they are asked for; yields what was held before."""
    held = _RELAYED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield set(before)
    finally:
        while signal.sigtimedwait(held, 0) is not None:
            pass  # what came when the program had ended was meant for it
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_program(
    argv: list[str], environment: Mapping[str, str], mask: set[int]
) -> subprocess.Popen[bytes]:
    def as_called() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    # What the caller left open is the program's, as if it had been started without us.
    return subprocess.Popen(argv, env=dict(environment), close_fds=False, preexec_fn=as_called)  # noqa: PLW1509


def _with_hook(environment: Mapping[str, str], notes: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(HOOK_FOLDER), environment.get("PYTHONPATH"))))
    return {**environment, "PYTHONPATH": path, "PROVISION_RUN_NOTES": notes}


def _wait_for_exit(child: subprocess.Popen[bytes]) -> _ExitResult:
    began = time.monotonic()
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            _suspend_self()
        elif pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            # The kernel counts what a process had before it became the program: that is we.
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return _ExitResult(
                child.returncode,
                usage.ru_maxrss * 1024 if usage.ru_maxrss > own else 0,
                time.monotonic() - began,
            )
        _forward_signal(child.pid)


def _forward_signal(pid: int) -> None:
    came = signal.sigtimedwait(_RELAYED | {signal.SIGCHLD}, 1.0)
    if (
        came is None
        or came.si_signo == signal.SIGCHLD
        or came.si_code == _FROM_KERNEL
        or came.si_pid == pid
    ):
        return
    with suppress(ProcessLookupError):
        os.kill(pid, came.si_signo)


def _suspend_self() -> None:
    """Stop as the program did, where a shell is there that sees it and can go on with both."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return
    os.close(terminal)
    os.kill(os.getpid(), signal.SIGSTOP)
