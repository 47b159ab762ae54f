"""The notebook's kernel, where there is one: what it shows, how it is restarted, and the secrets that Colab keeps."""

from __future__ import annotations

import asyncio
import inspect
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_COLAB_DATA = "application/vnd.colab-display-data+json"
"""What Colab's front end shows with a button of its own. Source: googlecolab/colabtools, `google/colab/_pip.py`."""


class NoSecret(Exception):
    """A secret could not be read from Colab's store; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """`shell` is IPython's, None where no kernel runs this."""

    shell: Any = None

    @property
    def in_kernel(self) -> bool:
        """Whether a kernel runs this, which can be restarted."""
        return getattr(self.shell, "kernel", None) is not None

    def display(self, bundle: dict[str, Any]) -> None:
        """Show a bundle of one thing in several forms; nothing where there is no notebook. Never fails: what counts was printed."""
        if self.in_kernel:
            try:
                self.shell.display_pub.publish(bundle)
            except Exception:  # noqa: BLE001 - a front end that cannot show it is no reason to stop
                return

    def restart_button(self, packages: tuple[str, ...], identity: str) -> None:
        """Show Colab's own button for a restart."""
        text = "restart the runtime"
        self.display({_COLAB_DATA: {"pip_warning": {"packages": list(packages)}, "id": identity}, "text/plain": text})

    def restart(self) -> None:
        """Ask the kernel to end and come back, when this cell is done."""
        answer = self.shell.kernel.do_shutdown(True)
        if inspect.isawaitable(answer):
            asyncio.ensure_future(answer)  # noqa: RUF006 - the loop ends with the kernel


def notebook_here() -> Notebook:
    """Return the notebook that this runs in. IPython is only asked where it is loaded."""
    ipython = sys.modules.get("IPython")
    return Notebook(ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None)


def colab_secret(name: str) -> str:
    """Return a secret of Colab's store. Raises NoSecret."""
    where = f"add {name} under the key symbol at the left of the notebook, and switch its notebook access on"
    try:
        userdata = import_module("google.colab.userdata")
    except ImportError:
        raise NoSecret("this is not Colab, which would keep it: set the variable before the kernel starts") from None
    try:
        value = userdata.get(name)
    except Exception as error:  # noqa: BLE001 - its exceptions are Colab's own and differ between releases
        kind = type(error).__name__
        if kind == "NotebookAccessError":
            raise NoSecret(f"this notebook has no access to it: {where}") from None
        if kind == "TimeoutException":
            raise NoSecret("Colab's store did not answer, which needs the notebook open in a browser") from None
        raise NoSecret(f"Colab's store does not hold it ({kind}): {where}") from None
    if not isinstance(value, str) or not value:
        raise NoSecret(f"Colab's store holds nothing for it: {where}")
    return value
