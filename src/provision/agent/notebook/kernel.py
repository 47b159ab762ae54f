"""The notebook's host and kernel: its output, its restart, and Colab's secrets."""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from types import FrameType
from typing import Any

from ..core.process import TIMED_OUT, run_process

_HOSTNAME = "/var/colab/hostname"


class Host(str, Enum):
    """A host; the value is its name for people."""

    COLAB = "Google Colab"
    ENTERPRISE = "Colab Enterprise"
    WORKBENCH = "Vertex AI Workbench"
    JUPYTER = "a Jupyter kernel"
    PYTHON = "Python without a kernel"

    @property
    def is_colab(self) -> bool:
        """Return whether its kernel is Colab's."""
        return self in (Host.COLAB, Host.ENTERPRISE)


def detect_host(
    environ: Mapping[str, str],
    modules: Collection[str],
    exists: Callable[[str], bool],
    in_kernel: bool,
) -> Host:
    """Return the host. Sources: colabtools `_resource_monitor.py`, variables of Vertex AI's images.

    Vertex is checked first: Colab Enterprise has Colab's modules and files too.
    """
    product = environ.get("VERTEX_PRODUCT", "")
    if product == "COLAB_ENTERPRISE":
        return Host.ENTERPRISE
    if product == "WORKBENCH_INSTANCE":
        return Host.WORKBENCH
    if "COLAB_RELEASE_TAG" in environ or "google.colab" in modules or exists(_HOSTNAME):
        return Host.COLAB
    return Host.JUPYTER if in_kernel else Host.PYTHON


_COLAB_DATA = "application/vnd.colab-display-data+json"
"""Content type that Colab's front end shows with a button. Source: googlecolab/colabtools,
`google/colab/_pip.py`.
"""


class SecretUnavailable(Exception):
    """A secret could not be read from Colab's store; the text is the advice for the user."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """`shell` is IPython's; None without a kernel."""

    shell: Any = None

    @property
    def in_kernel(self) -> bool:
        """Return whether this runs in a kernel, which can be restarted."""
        return getattr(self.shell, "kernel", None) is not None

    def display(self, bundle: dict[str, Any]) -> None:
        """Show one thing in several formats; without a notebook, show nothing. Never fails."""
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
    """Return a secret of Colab, which may ask the user for access. Raises SecretUnavailable."""
    advice = (
        f"add {name} in Colab's Secrets panel (the key icon on the left), and turn on its notebook "
        "access"
    )
    try:
        userdata = import_module("google.colab.userdata")
    except ImportError:
        raise SecretUnavailable(
            "only Colab stores secrets, and this is not Colab: set the variable before the "
            "kernel starts"
        ) from None
    try:
        with _time_limit(timeout_s):
            value = userdata.get(name)
    except Exception as error:  # noqa: BLE001
        kind = type(error).__name__
        if kind in ("TimeoutException", "TimeoutError"):
            raise SecretUnavailable(
                "Colab's secret store did not respond: open the notebook in a browser, or set the "
                "variable before the kernel starts"
            ) from None
        why = f"it is not in Colab's secret store ({kind})"
        if kind == "NotebookAccessError":
            why = "this notebook does not have access to it"
        raise SecretUnavailable(f"{why}: {advice}") from None
    if not isinstance(value, str) or not value:
        raise SecretUnavailable(f"its value in Colab's secret store is empty: {advice}")
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


_COLAB = "import google.colab, google.colab._kernel, colab_kernel_launcher"
_PLAIN = "import ipykernel, IPython; from ipykernel.kernelapp import IPKernelApp"
_TIMEOUT_S = 120.0


def find_kernel_start_error(host: Host, python: str, environ: Mapping[str, str]) -> str:
    """Return Python's error if a new kernel would not start, else ""."""
    code = _COLAB if host.is_colab else _PLAIN
    answer = run_process([python, "-c", code], _TIMEOUT_S, environ)
    if answer.code == TIMED_OUT:
        return f"its imports did not finish within {_TIMEOUT_S:.0f} s"
    if answer.code == 0:
        return ""
    return (answer.output_tail.splitlines() or [f"exit code {answer.code}"])[-1][:300]
