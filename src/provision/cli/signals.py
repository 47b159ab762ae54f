"""Handlers of SIGINT, SIGTERM and SIGHUP, from the first line until the interpreter has ended.

This module imports as little as possible: a signal that arrives before the handlers are set ends
the process as any Python program.
"""

from __future__ import annotations

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
_RAISE_AGAIN_AFTER_S = 0.01
_received_signals: list[int] = []


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived.

    It unwinds like Ctrl-C, so that children end and the journal keeps its intents.
    """

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__()
        self.number = number


def end_on_signals() -> None:
    """Make the signals end this process at once: before a command begins and after it has ended."""
    _set_handlers(exit_on_signal)


def raise_on_signals() -> None:
    """Make the signals raise KeyboardInterrupt and `Terminated` in the main thread."""
    _set_handlers(_raise)
    signal.signal(signal.SIGALRM, _raise_again)
    sys.unraisablehook = _keep_interrupt


def last_signal() -> int | None:
    """Return the number of the last signal that was raised in this process."""
    return _received_signals[-1] if _received_signals else None


def exit_on_signal(number: int, _frame: FrameType | None = None) -> NoReturn:
    """End this process with 128 + the number of a signal."""
    os._exit(128 + number)


def ignore_signals_at_exit() -> None:
    """Ignore the signals while the interpreter shuts down.

    The interpreter resets the handlers to the default action, and a signal would then end a
    command that has succeeded. The output is written before, while a signal still ends a process
    whose reader does not read.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue
    _set_handlers(signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a lost interrupt would be raised again


def clear_unhandled_interrupt() -> None:
    """Make the interpreter forget a Ctrl-C that arrived inside `exec` of a text and was handled.

    CPython 3.10 to 3.13 records a KeyboardInterrupt that leaves such a text (while a dataclass is
    defined, for example) as unhandled. `python -m` then ends by SIGINT, whatever its exit code. The
    next text that runs resets the record.
    """
    exec("")  # noqa: S102


def _set_handlers(handler: Any) -> None:
    for number in _SIGNALS:
        # `nohup` and `&` ignore a signal so that the command continues.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    _received_signals.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def _raise_again(_number: int, frame: FrameType | None) -> None:
    if _received_signals and signal.getsignal(_received_signals[-1]) is _raise:
        _raise(_received_signals[-1], frame)


def _keep_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Raise an interrupt again that Python drops.

    A handler can run in a callback, such as that of a weak reference to a module's lock during an
    import.
    """
    if isinstance(lost.exc_value, KeyboardInterrupt | Terminated):
        signal.setitimer(signal.ITIMER_REAL, _RAISE_AGAIN_AFTER_S)
    else:
        sys.__unraisablehook__(lost)
