"""Runs a program with our terminal while another process records what it uses. Linux only."""

from __future__ import annotations

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
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import provision
from provision.adapters.process import start_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.effects.local import MonitorRequest

_RELAYED_NAMES = (
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
_RELAYED_SIGNALS = {
    getattr(signal, f"SIG{name}") for name in _RELAYED_NAMES if hasattr(signal, f"SIG{name}")
}
_BLOCKED_SIGNALS = _RELAYED_SIGNALS | {signal.SIGCHLD}
_FROM_KERNEL = 0x80
"""si_code of a signal of the terminal (sigaction(2)): the program's group received it already."""
_PACKAGE = Path(provision.__file__).parent
_SAMPLER_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from provision.agent.probe.monitor.sampler "
    "import main; sys.exit(main())"
)
_SAMPLER_GRACE_S = 5.0
HOOK_FOLDER = _PACKAGE / "agent" / "probe" / "monitor" / "hook"


def run_monitored(
    argv: list[str],
    environment: Mapping[str, str],
    watch: MonitorRequest,
    folder: Path | None = None,
) -> int:
    """Run a program and return its exit code (negative: the signal that ended it).

    `argv[0]` is its path. A signal that a person or program sends us is relayed; one from the
    terminal has reached the program already. When it stops (Ctrl-Z), so do we.

    Raises:
        OSError: the program cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryDirectory(prefix="provision-run-", ignore_cleanup_errors=True) as notes:
        sampler = _Sampler(watch, notes, environment)
        with _blocked_signals() as mask:
            path = filter(None, (str(HOOK_FOLDER), environment.get("PYTHONPATH")))
            hook = {"PYTHONPATH": os.pathsep.join(path), "PROVISION_RUN_NOTES": notes}
            variables = {**environment, **hook}
            try:
                # What the caller left open is the program's, as if it had been started without us.
                child = start_program(
                    argv, variables, signal_mask=mask, close_fds=False, cwd=folder
                )
            except OSError:
                sampler.close()
                raise
            sampler.send({"pid": child.pid})
            sampler.send(_wait_for_exit(child))
            sampler.close()
    return child.returncode


def exit_with_signal(number: int) -> NoReturn:
    """End this process by a signal, without a core dump, as the program was ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError, ValueError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the signal does not end a process


class _Sampler:
    """The recording process; Ctrl-C does not reach it, and it never delays us for long."""

    def __init__(self, watch: MonitorRequest, notes: str, environment: Mapping[str, str]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            watch.record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._process = start_program(
                [sys.executable, "-I", "-S", "-c", _SAMPLER_PROGRAM, str(_PACKAGE.parent)],
                environment,
                dies_with_us=False,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        self.send(
            {
                "out": str(watch.record.absolute()),
                "notes": notes,
                "secrets": list(watch.secrets),
                "tool": {"name": "provision", "version": provision.__version__},
                "subject": watch.subject,
                "program": watch.program,
            }
        )

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message, unless the sampler is gone."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()

    def close(self) -> None:
        """Let it write its record, and wait for that a few seconds."""
        if self._process is None:
            return
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_SAMPLER_GRACE_S)
        except subprocess.TimeoutExpired:  # a driver that hangs blocks who reads from it
            self._process.kill()


@contextmanager
def _blocked_signals() -> Iterator[set[int]]:
    """Block the signals that `_relay_signal` waits for; yields the mask from before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED_SIGNALS)
    try:
        yield set(before)
    finally:
        while signal.sigtimedwait(_BLOCKED_SIGNALS, 0) is not None:
            pass  # what came after the program had ended was meant for it
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for_exit(child: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for the program, and return the message about its end to the sampler."""
    start = time.monotonic()
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG | os.WUNTRACED)
        if not pid:
            _relay_signal(child.pid)
        elif os.WIFSTOPPED(status):
            _suspend_self()
        else:
            break
    child.returncode = code = os.waitstatus_to_exitcode(status)
    # The kernel counts what a process used before it became the program: that was our own memory.
    own_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "code": code if code >= 0 else 128 - code,
        "signal": signal.Signals(-code).name if code < 0 else None,
        "largest_bytes": usage.ru_maxrss * 1024 if usage.ru_maxrss > own_bytes else None,
        "seconds": time.monotonic() - start,
    }


def _relay_signal(pid: int) -> None:
    received = signal.sigtimedwait(_BLOCKED_SIGNALS, 1.0)
    if received is None or received.si_signo == signal.SIGCHLD:
        return
    if received.si_code == _FROM_KERNEL or received.si_pid == pid:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, received.si_signo)


def _suspend_self() -> None:
    """Stop as the program did, if a terminal is there whose shell can continue both."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return
    os.close(terminal)
    os.kill(os.getpid(), signal.SIGSTOP)
