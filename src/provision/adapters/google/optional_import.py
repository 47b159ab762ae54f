"""Imports the optional packages for Google Cloud when they are used."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from provision.errors import ExternalError

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_EXTRA = ("google", "grpc", "requests", "proto")


def import_optional(module: str) -> Any:
    """Import a module of the extra `workbench`; a signal waits until that is done.

    Raises:
        ExternalError: it is not installed; with the command that installs it.
    """
    try:
        with _deferred_signals():
            return import_module(module)
    except ImportError as error:  # google-auth raises its own for a missing requests
        missing = error.name or getattr(error.__cause__, "name", None) or "google"
        if missing.split(".")[0] not in _EXTRA:
            raise
        from provision.extras import install_command

        raise ExternalError(
            "Google Cloud support is not installed",
            why=f"the module {missing} is missing",
            hint=install_command("workbench"),
        ) from error


@contextmanager
def _deferred_signals() -> Iterator[None]:
    """Handle signals after the block.

    Google's modules register their messages in the process and cannot be imported a second time
    after an interruption. What was started could then not be deleted.
    """
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    if threading.current_thread() is not threading.main_thread():
        handlers.clear()
    received: list[int] = []
    for number in handlers:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])
