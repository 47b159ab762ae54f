"""What earlier runs of this cell left: the kernel they ran in, what was in use when it was changed,
and the report that was made of what.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .loaded_modules import KernelProcess

SCHEMA = "provision.agent.notebook-state/1"
STATE_FILE = "state.json"


@dataclass
class RunState:
    """`in_use` are packages that this kernel had loaded when they were changed. `proven` is the
    digest of what `report_sha256` and `verdict` were found of.
    """

    kernel: KernelProcess
    in_use: list[str] = field(default_factory=list)
    alive: str = ""
    proven: str = ""
    verdict: str = ""
    report_sha256: str = ""

    def save(self, folder: Path) -> None:
        """Write it, whole or not at all."""
        write_json(folder / STATE_FILE, {"schema": SCHEMA, **asdict(self)})


def read_run_state(folder: Path, kernel: KernelProcess) -> RunState:
    """Return what is known for this kernel: of another one, what it had loaded counts no more. What
    cannot be read is nothing.
    """
    document = read_json(folder / STATE_FILE)
    if document.get("schema") != SCHEMA:
        return RunState(kernel)
    texts = {
        key: str(document.get(key) or "") for key in ("alive", "proven", "verdict", "report_sha256")
    }
    same = document.get("kernel") == asdict(kernel)
    in_use = document.get("in_use") if same else []
    return RunState(
        kernel, [str(one) for one in in_use] if isinstance(in_use, list) else [], **texts
    )


def read_json(path: Path) -> dict[str, Any]:
    """Return an object from a file; {} where there is none that can be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write an object, whole or not at all. Raises OSError."""
    write_file_atomically(path, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())


def write_file_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never half. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
