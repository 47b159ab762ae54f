"""Machines of execution jobs: a folder with an interpreter, in which a notebook runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import venv
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

_FOREIGN = ("PYTHON", "VIRTUAL_ENV", "CONDA", "JUPYTER", "IPYTHON", "GOOGLE_")
_MODULES = ("nbclient", "ipykernel")
_END_S = 5.0
COLAB_PRODUCT = "COLAB_ENTERPRISE"
_COLAB_MODULES = ("google/colab/__init__.py", "google/colab/_kernel.py", "colab_kernel_launcher.py")
"""The modules that a kernel of Colab imports when it starts; empty on the emulated machine."""


class NotebookRun(NamedTuple):
    """A notebook to run, the address of the storage service, its limit, and VERTEX_PRODUCT.

    `dies` kills its kernel once a cell runs.
    """

    content: bytes
    storage: str
    timeout_s: float
    product: str
    dies: bool = False


class NotebookMachines:
    """The machines of the running jobs, by the job's name; they end with this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve() / "executions"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def start(self, name: str, notebook: NotebookRun, done: Callable[[str, bytes], None]) -> None:
        """Run a notebook; `done` gets the error ("" for none) and the executed notebook."""
        arguments = (name, notebook, done)
        thread = threading.Thread(target=self._run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, name: str) -> None:
        """End the machine of a job, if it runs."""
        with self._lock:
            process = self._running.pop(name, None)
        if process is not None:
            _end(process)

    def close(self) -> None:
        """End all machines."""
        self._is_closed = True
        for name in list(self._running):
            self.stop(name)
        for thread in self._threads:
            thread.join(_END_S)

    def _run(self, name: str, notebook: NotebookRun, done: Callable[[str, bytes], None]) -> None:
        missing = [module for module in _MODULES if find_spec(module) is None]
        if missing:
            done(f"the sandbox cannot run notebooks without {' and '.join(missing)}", b"")
            return
        try:
            folder = self._make_folder(name)
            _make_kernel(folder / "usr", notebook.product)
            source, output, status = (
                folder / file for file in ("in.ipynb", "out.ipynb", "status.json")
            )
            source.write_bytes(notebook.content)
        except OSError as problem:
            done(f"the machine for the kernel was not created: {problem}", b"")
            return
        with self._lock:
            if self._is_closed:
                return
            process = subprocess.Popen(
                [
                    *(sys.executable, str(Path(__file__).with_name("notebook_runner.py"))),
                    *map(str, (source, output, status, notebook.timeout_s)),
                    *(("dies",) if notebook.dies else ()),
                ],
                cwd=folder / "content",
                env=_variables(folder, notebook),
                stdin=subprocess.DEVNULL,
                stdout=(folder / "log.txt").open("wb"),
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running[name] = process
        process.wait()
        with self._lock:
            stopped = self._running.pop(name, None) is None
        if stopped or self._is_closed:
            return
        log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        error = f"the kernel's machine ended: {log[-1][:300] if log else 'without a message'}"
        with suppress(OSError, ValueError):
            error = str(json.loads(status.read_bytes())["error"])
        done(error, output.read_bytes() if output.exists() else b"")

    def _make_folder(self, name: str) -> Path:
        """Return a new folder for the machine of a job, without those of earlier machines.

        The kernel of an earlier one may still write while it ends.
        """
        prefix = f"{sha256(name.encode()).hexdigest()[:16]}-"
        for earlier in self._folder.glob(f"{prefix}*"):
            shutil.rmtree(earlier, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix=prefix, dir=self._folder))
        (folder / "content").mkdir()
        (folder / "home").mkdir()
        return folder


def _make_kernel(folder: Path, product: str) -> None:
    """Make a kernel in an environment that also sees the packages of this one.

    The environment stands for the image of the product, whose packages nobody publishes. What a
    notebook installs goes into the environment, never into this interpreter's packages.
    """
    venv.create(folder, symlinks=True, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "emulator.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    for name in _COLAB_MODULES if product == COLAB_PRODUCT else ():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text('"""Part of the emulated image."""\n', encoding="utf-8")
    argv = [str(folder / "bin/python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = folder / "share/jupyter/kernels/python3/kernel.json"
    kernel.parent.mkdir(parents=True)
    document = {"argv": argv, "display_name": "Python 3", "language": "python"}
    kernel.write_text(json.dumps(document), encoding="utf-8")


def _variables(folder: Path, notebook: NotebookRun) -> dict[str, str]:
    """Return the variables of a kernel on a runtime of Vertex AI."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith(_FOREIGN)}
    return {
        **kept,
        "HOME": str(folder / "home"),
        "JUPYTER_PATH": str(folder / "usr/share/jupyter"),
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache/uv")),
        "VERTEX_PRODUCT": notebook.product,
        "PROVISION_CELL_BASE": str(folder / "content/.provision"),
        "STORAGE_EMULATOR_HOST": notebook.storage,
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
