"""Runs a notebook in a real kernel, as a program of its own: INPUT OUTPUT STATUS TIMEOUT_S [dies].

It writes the executed notebook to OUTPUT and the outcome as JSON to STATUS, and ends with the
process that started it. With `dies`, it kills the kernel once the first cell runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

_POLL_S = 0.2


def main(arguments: list[str]) -> int:
    """Run the notebook and return 0; a failure of the notebook is an outcome."""
    source, output, status, timeout_s, *dies = arguments
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    outcome = _run(Path(source), Path(output), float(timeout_s), dies=bool(dies))
    unfinished = Path(f"{status}.part")
    unfinished.write_text(json.dumps(outcome), encoding="utf-8")
    unfinished.replace(status)
    return 0


def _run(source: Path, output: Path, timeout_s: float, *, dies: bool) -> dict[str, str]:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    try:
        notebook = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - nbformat raises whatever the JSON causes
        return {"error": f"the notebook cannot be read: {error}"[:2000]}
    client = NotebookClient(notebook, timeout=max(1, int(timeout_s)), kernel_name="python3")
    if dies:
        client.on_cell_execute = lambda **_: _kill_kernel(client)
    outcome = ""
    try:
        client.execute(cwd=str(Path.cwd()))
    except CellTimeoutError:
        outcome = f"the execution did not finish within {timeout_s:.0f} s"
    except DeadKernelError:
        outcome = "the kernel died"
    except CellExecutionError as failure:
        outcome = f"{failure.ename}: {failure.evalue}"
    except Exception as failure:  # noqa: BLE001 - no kernel
        outcome = f"the kernel did not start: {failure}"
    text = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    output.write_text(text, encoding="utf-8")
    return {"error": outcome[:2000]}


def _kill_kernel(client: Any) -> None:
    os.kill(client.km.provisioner.pid, signal.SIGKILL)


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
