"""Binds a state from another machine or folder to this one, after showing its resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.commands.shared.load import state_folder
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import UsageError
from provision.state import Ledger, build_kernel_name
from provision.state_store import LocalStore

_RECORD_DROPPED = "belongs to the other folder, so its record is removed"


@dataclass(frozen=True, slots=True)
class RecordedResource:
    """A resource in a state, its location, and the fate of its record."""

    address: str
    part: str
    title: str
    where: str
    becomes: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """A state file, why it is foreign ("" if it is not), and its resources."""

    path: Path
    foreign_reason: str
    resources: tuple[RecordedResource, ...]


Confirm = Callable[[Adoption], None]
"""Shows the adoption and requests a confirmation; raises Refused without it."""


def adopt(
    path: Path,
    system: System,
    confirm: Confirm,
    progress: ProgressCallback,
    *,
    lock_wait_s: float = 0,
    sandbox: bool = False,
) -> Adoption:
    """Bind the state next to a spec to this machine and folder; only the state changes.

    Kernels that were registered from the other folder belong to it: their records are dropped.

    Raises:
        UsageError: there is no state.
        StateError: it is damaged, tracked by git, or another user's.
        Refused: declined.
    """
    folder = state_folder(path, sandbox=sandbox)
    store = LocalStore(folder, system)
    state_file = folder / "state.json"
    if not system.exists(state_file):
        raise UsageError(
            f"there is no {state_file}",
            why="nothing has been created for this spec yet",
            hint="check the path of the spec, or create its targets with `provision apply`",
        )
    shown = _adoption(state_file, store.load_ledger(), system)
    if not shown.foreign_reason:
        return shown
    confirm(shown)
    with store.exclusive(lock_wait_s, lambda _: None):
        ledger = store.load_ledger()
        adoption = _adoption(state_file, ledger, system)
        if adoption != shown:
            confirm(adoption)  # another run changed something while this one was waiting
        state = ledger.state
        for resource in adoption.resources:
            if resource.becomes == _RECORD_DROPPED:
                progress(f"{resource.where} is kept; its record is removed")
                state = state.with_record(resource.address, resource.part, None)
        store.bind(state)
    return adoption


def _adoption(path: Path, ledger: Ledger, reader: Reader) -> Adoption:
    resources = [
        _recorded_resource(key, record, path.parent, reader)
        for key, record in sorted(ledger.state.resources.items())
    ]
    return Adoption(path, ledger.foreign_reason, tuple(resources))


def _recorded_resource(
    key: str, record: Mapping[str, Any], folder: Path, reader: Reader
) -> RecordedResource:
    address, _, part = key.rpartition("#")
    location, becomes = "not on this machine", "stays recorded"
    if outside := [Path(path) for path in record.get("outside", ())]:
        location = str(outside[0])
        if not all(path.name == build_kernel_name(address, folder) for path in outside):
            becomes = _RECORD_DROPPED
    elif paths := [folder / str(path) for path in record.get("paths", ())]:
        location = str(paths[0])
        exists = any(reader.exists(path) for path in paths)
        becomes = "exists" if exists else "is missing: apply will recreate it"
    return RecordedResource(address, part, str(record.get("title", part)), location, becomes)
