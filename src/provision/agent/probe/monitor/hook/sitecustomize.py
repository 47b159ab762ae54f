"""Notes torch's memory at the end of a Python that imported it.

Another module named sitecustomize runs as if this one did not exist.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False  # as typing has it, which is not imported into every Python of the program
if TYPE_CHECKING:
    from typing import Any

_LONGEST = 6000


def _note(folder: str) -> None:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    try:
        import json

        note = {"pid": os.getpid(), "version": str(torch.__version__), "cards": _cards(torch)}
        with open(os.path.join(folder, f"torch-{os.getpid()}.json"), "w", encoding="utf-8") as out:
            json.dump(note, out)
    except Exception:  # noqa: BLE001
        return


def _cards(torch: Any) -> Any:
    if not torch.cuda.is_initialized():  # a query for cards would start the driver
        return []
    return [
        {
            "name": torch.cuda.get_device_name(index),
            "allocated_bytes": torch.cuda.max_memory_allocated(index),
            "reserved_bytes": torch.cuda.max_memory_reserved(index),
            "summary": torch.cuda.memory_summary(index)[:_LONGEST],
        }
        for index in range(torch.cuda.device_count())
    ]


def _step_aside() -> None:
    """Take this folder off the path, and run the sitecustomize that would have run without it."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        other = module_from_spec(spec)
        sys.modules["sitecustomize"] = other
        spec.loader.exec_module(other)


if os.environ.get("PROVISION_RUN_NOTES"):
    atexit.register(_note, os.environ["PROVISION_RUN_NOTES"])
_step_aside()
