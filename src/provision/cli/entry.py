"""Entry point of the command line: sets the handlers of SIGINT, SIGTERM and SIGHUP before it
imports anything else.

Whichever of them arrives, the exit code is 128 + its number, from the first line here until the
interpreter has ended. What Python does before that line cannot
be covered: it starts, runs the .pth files of the environment and imports this file. On two cores
and Python 3.11 that takes 16 ms of the 80 ms of `provision
--version`, 12 of them before any line of this package. A signal that arrives then ends the
process as any Python program: SIGINT with a traceback.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False  # importing typing takes as long as all that is imported here
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_AGAIN_S = 0.01
_received_signals: list[int] = []


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived: unwound like Ctrl-C, so that children end and the journal keeps
    what was begun.
    """

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__()
        self.number = number


def run_cli(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    end_on_signals()
    atexit.register(_ignore_signals)  # the first one registered runs last
    try:
        from provision.cli.main import main as answer

        return answer(arguments)
    except (
        KeyboardInterrupt,
        Terminated,
    ):  # a second signal, just before `end_on_signals` after the first one
        _exit_on_signal(_received_signals[-1] if _received_signals else signal.SIGINT, None)


def end_on_signals() -> None:
    """Make the signals end this process at once: for before a command begins, and for after it has
    ended.
    """
    _set_handlers(_exit_on_signal)


def raise_on_signals() -> None:
    """Make the signals raise KeyboardInterrupt and `Terminated` in the main thread: for while a
    command runs.
    """
    _set_handlers(_raise)
    signal.signal(signal.SIGALRM, _raise_again)
    sys.unraisablehook = _keep_interrupt


def last_signal() -> int | None:
    """Return the number of the last signal that was raised in this process."""
    return _received_signals[-1] if _received_signals else None


def _set_handlers(handler: Any) -> None:
    for number in _SIGNALS:
        if (
            signal.getsignal(number) is not signal.SIG_IGN
        ):  # `nohup` and `&` ignore a signal so that we continue
            signal.signal(number, handler)


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(128 + number)


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    _received_signals.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def _raise_again(_number: int, frame: FrameType | None) -> None:
    if _received_signals and signal.getsignal(_received_signals[-1]) is _raise:
        _raise(_received_signals[-1], frame)


def _keep_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Raise an interrupt again that Python drops: a handler can run in a callback, such as that of
    a weak reference to a module's lock during imports.
    """
    if isinstance(lost.exc_value, KeyboardInterrupt | Terminated):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(lost)


def _ignore_signals() -> None:
    """Ignore the signals while the interpreter is taken down: it resets handlers to the default
    action, so that one would end a command that has succeeded.

    The output is written before, while a signal still ends a process whose reader does not read.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue
    _set_handlers(signal.SIG_IGN)
