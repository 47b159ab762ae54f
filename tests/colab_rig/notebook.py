"""A notebook on a machine of the stand-in, run as a person runs it: cell by cell or all at once, in
a kernel that can die and be started again.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self, TypeVar

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from tests.colab_rig.machine import Machine

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Ran:
    """What became of a cell: `ended` is "ok", "error" or "died" (its kernel was gone afterwards);
    its outputs as Jupyter keeps them.
    """

    ended: str
    outputs: list[Any]
    seconds: float

    @property
    def text(self) -> str:
        """All that a reader sees as text: streams, results, tracebacks; without colours."""
        return _ANSI.sub("", "".join(_texts(self.outputs)))

    @property
    def error(self) -> str:
        """The name of the exception that ended the cell, "" for none."""
        return next(
            (str(output["ename"]) for output in self.outputs if output["output_type"] == "error"),
            "",
        )

    def shown(self, mime: str) -> list[Any]:
        """Return what was displayed as one kind of content."""
        return [output["data"][mime] for output in self.outputs if mime in output.get("data", {})]


class Notebook:
    """A notebook with a kernel of its own; use it in `with`, which ends the kernel."""

    def __init__(self, machine: Machine, path: Path | None = None, timeout: int = 600) -> None:
        self.machine = machine
        self.content = (
            nbformat.read(path, as_version=4) if path is not None else nbformat.v4.new_notebook()
        )  # type: ignore[no-untyped-call]
        specs = KernelSpecManager(
            kernel_dirs=[str(machine.folder / "kernels")], ensure_native_kernel=False
        )
        # Ports are chosen before the kernel takes them, and another test's kernel may be faster;
        # names of sockets in a folder of its own are nobody else's.
        # /tmp, because such a name has at most 107 bytes (unix(7)).
        self._sockets = TemporaryDirectory(prefix="kernel-", dir="/tmp")
        self._manager = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=specs,
            transport="ipc",
            ip=f"{self._sockets.name}/socket",
        )
        self._client = NotebookClient(
            self.content, km=self._manager, timeout=timeout, kernel_name="python3"
        )
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._wait(
            self._client.async_start_new_kernel(
                env=self.machine.environment(), cwd=str(self.machine.content)
            )
        )
        self._wait(self._client.async_start_new_kernel_client())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client.kc is not None:
            self._client.kc.stop_channels()
        self._wait(self._manager.shutdown_kernel(now=True))
        self._wait(asyncio.sleep(0))
        self._loop.close()
        self._sockets.cleanup()

    @property
    def code(self) -> list[Any]:
        """The cells of code, in order."""
        return [cell for cell in self.content.cells if cell.cell_type == "code"]

    @property
    def alive(self) -> bool:
        """Whether the kernel runs."""
        return bool(self._wait(self._manager.is_alive()))

    @property
    def pid(self) -> int:
        """The process of the kernel."""
        return int(self._manager.provisioner.pid)  # type: ignore[union-attr]

    def run(self, code: str | int) -> Ran:
        """Run a cell of the notebook by its place among the cells of code, or further code as a
        cell that is added at its end.
        """
        if isinstance(code, str):
            self.content.cells.append(nbformat.v4.new_code_cell(code))  # type: ignore[no-untyped-call]
            code = len(self.code) - 1
        cell = self.code[code]
        cell.outputs = []
        began = time.perf_counter()
        try:
            self._wait(self._client.async_execute_cell(cell, self.content.cells.index(cell)))
            ended = "ok"
        except CellExecutionError:
            ended = "error"
        except DeadKernelError:
            ended = "died"
        seconds = time.perf_counter() - began
        return Ran(ended if self._wait(self._stays()) else "died", list(cell.outputs), seconds)

    def run_all(self) -> list[Ran]:
        """Run all cells as the menu does: a cell that fails ends it, and so does a kernel that goes
        away.
        """
        done: list[Ran] = []
        for place in range(len(self.code)):
            done.append(self.run(place))
            if done[-1].ended != "ok":
                break
        return done

    def restart(self) -> None:
        """Start the kernel again, as Colab does by itself when it is gone; raises DeadKernelError
        when none comes.
        """
        assert self._client.kc is not None
        self._client.kc.stop_channels()
        self._wait(self._manager.restart_kernel(now=True))
        try:
            self._wait(self._client.async_start_new_kernel_client())
        except RuntimeError as error:
            raise DeadKernelError(str(error)) from error

    def write(self, path: Path) -> Path:
        """Write the notebook with its outputs."""
        nbformat.write(self.content, path)  # type: ignore[no-untyped-call]
        return path

    async def _stays(self) -> bool:
        """Tell whether the kernel is still there; one that was asked to go is waited for: it does
        so some time after its answer.
        """
        client = self._client.kc
        assert client is not None
        asked = ""
        while await self._manager.is_alive():
            asked = asked or client.execute(
                "",
                silent=True,
                store_history=False,
                user_expressions={"leaving": "get_ipython().exit_now"},
            )
            try:
                answer = await client.get_shell_msg(timeout=0.3)
            except Empty:
                continue
            if answer["parent_header"].get("msg_id") != asked:
                continue
            told = (
                answer["content"]
                .get("user_expressions", {})
                .get("leaving", {})
                .get("data", {})
                .get("text/plain")
            )
            if told == "False":
                return True
            asked = (
                asked if told == "True" else ""
            )  # what comes right after a cell that failed is thrown away
        return False

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._loop.run_until_complete(work)


def _texts(outputs: list[Any]) -> Iterator[str]:
    for output in outputs:
        match output["output_type"]:
            case "stream":
                yield output["text"]
            case "error":
                yield "\n".join(output["traceback"]) + "\n"
            case _:
                yield str(output["data"].get("text/plain", "")) + "\n"
