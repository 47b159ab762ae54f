"""The state that runs of a cell share: kernel, packages that were in use, and the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..core.files import read_json_object, write_json_object
from .loaded_modules import KernelProcess

SCHEMA = "provision.agent.notebook-state/1"
STATE_FILE = "state.json"


@dataclass
class RunState:
    """State of earlier runs.

    `in_use`: packages loaded when they changed. `proven`: digest of what the stored report is
    valid for.
    """

    kernel: KernelProcess
    in_use: list[str] = field(default_factory=list)
    alive: str = ""
    proven: str = ""
    verdict: str = ""
    report_sha256: str = ""

    def save(self, folder: Path) -> None:
        """Write it, whole or not at all."""
        write_json_object(folder / STATE_FILE, {"schema": SCHEMA, **asdict(self)})


def read_run_state(folder: Path, kernel: KernelProcess) -> RunState:
    """Return the stored state: empty if damaged, without `in_use` for another kernel."""
    document = read_json_object(folder / STATE_FILE)
    if document.get("schema") != SCHEMA:
        return RunState(kernel)
    keys = ("alive", "proven", "verdict", "report_sha256")
    texts = {key: str(document.get(key) or "") for key in keys}
    in_use = document.get("in_use") if document.get("kernel") == asdict(kernel) else []
    return RunState(kernel, list(in_use) if isinstance(in_use, list) else [], **texts)
