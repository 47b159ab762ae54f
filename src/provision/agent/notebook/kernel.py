"""The notebook's kernel, if there is one: its output, its restart, and Colab's secrets."""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any

_COLAB_DATA = "application/vnd.colab-display-data+json"
"""Content type that Colab's front end shows with a button. Source: googlecolab/colabtools,
`google/colab/_pip.py`.
"""


class SecretUnavailable(Exception):
    """A secret could not be read from Colab's store; the text is the advice for the user."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """`shell` is IPython's, None where no kernel runs this."""

    shell: Any = None

    @property
    def in_kernel(self) -> bool:
        """Return whether a kernel runs this, which can be restarted."""
        return getattr(self.shell, "kernel", None) is not None

    def display(self, bundle: dict[str, Any]) -> None:
        """Show one thing in several formats; without a notebook, nothing. Never fails."""
        if self.in_kernel:
            try:
                self.shell.display_pub.publish(bundle)
            except Exception:  # noqa: BLE001
                return

    def show_restart_button(self, packages: tuple[str, ...], identity: str) -> None:
        """Show Colab's own button for a restart."""
        text = "restart the runtime"
        self.display(
            {
                _COLAB_DATA: {"pip_warning": {"packages": list(packages)}, "id": identity},
                "text/plain": text,
            }
        )

    def restart(self) -> None:
        """Restart the kernel when this cell is done."""
        answer = self.shell.kernel.do_shutdown(True)
        if inspect.isawaitable(answer):
            asyncio.ensure_future(answer)  # noqa: RUF006


def find_notebook() -> Notebook:
    """Return the notebook that this runs in. IPython is used only if it is loaded."""
    ipython = sys.modules.get("IPython")
    return Notebook(
        ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    )


def read_colab_secret(name: str, timeout_s: float = 120.0) -> str:
    """Return a secret of Colab, which may first ask for access. Raises SecretUnavailable."""
    advice = (
        f"add {name} under the key symbol at the left of the notebook, and switch its notebook "
        "access on"
    )
    try:
        userdata = import_module("google.colab.userdata")
    except ImportError:
        raise SecretUnavailable(
            "this is not Colab, which would keep it: set the variable before the kernel starts"
        ) from None
    try:
        with _time_limit(timeout_s):
            value = userdata.get(name)
    except Exception as error:  # noqa: BLE001
        kind = type(error).__name__
        if kind in ("TimeoutException", "TimeoutError"):
            raise SecretUnavailable(
                "Colab's store did not answer: it needs the notebook open in a browser; "
                "elsewhere set the variable before"
            ) from None
        why = f"Colab's store does not hold it ({kind})"
        if kind == "NotebookAccessError":
            why = "this notebook has no access to it"
        raise SecretUnavailable(f"{why}: {advice}") from None
    if not isinstance(value, str) or not value:
        raise SecretUnavailable(f"Colab's store holds nothing for it: {advice}")
    return value


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in this thread after some seconds; only in the main thread.

    A kernel runs its cells there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_signum: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
