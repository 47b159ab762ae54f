"""Paths in a state: they are removed only if provision makes them for their own target."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from provision.effects.local import RemoveFileIfUnmodified, RemoveSymlink, RemoveTree
from provision.effects.system import Effect
from provision.errors import Refused, StateError
from provision.state import Ledger, to_folder_name

_HINT = "look at the state file: provision did not write this into it"


REMOVAL_EFFECTS = (RemoveSymlink, RemoveTree, RemoveFileIfUnmodified)
"""Effects that remove something on this machine."""


def refuse_foreign_removals(ledger: Ledger, effects: Iterable[Effect], folder: Path) -> None:
    """Raise StateError for removals on this machine that a state from elsewhere implies."""
    removed = [effect.path for effect in effects if isinstance(effect, REMOVAL_EFFECTS)]
    if ledger.foreign_reason and removed:
        raise StateError(
            f"{removed[0]} is not removed: the state that names it was not written here",
            why=ledger.foreign_reason,
            hint="look at what it names and make it this folder's: provision adopt; or, if nothing "
            f"of it is here, move {folder / 'state.json'} away",
        )


def plan_kernel_removal(record: Mapping[str, Any], address: str) -> tuple[RemoveTree, ...]:
    """Return the removals of the kernels in a record, outside our folder.

    Raises:
        Refused: they are not kernels of this address.
    """
    paths = [Path(path) for path in record.get("outside", ())]
    ours = re.escape(build_kernel_prefix(address))
    foreign = [
        path
        for path in paths
        if path.parent.name != "kernels"
        or not re.fullmatch(rf"{ours}-[0-9a-f]{{8}}", path.name)
        or ".." in path.parts
    ]
    if foreign:
        why = f"the state names it as a Jupyter kernel of {address}"
        raise Refused(
            f"{foreign[0]} is not a kernel that provision makes for {address}", why=why, hint=_HINT
        )
    return tuple(RemoveTree(path) for path in paths)


def resolve_own_folder(folder: Path, relative: str, address: str) -> Path:
    """Return a recorded path in our own folder.

    Raises:
        Refused: it is not an environment or the reports of this address.
    """
    top, _, name = relative.partition("/")
    own = to_folder_name(address)
    if not (
        (top == "envs" and re.fullmatch(rf"{re.escape(own)}(-[0-9a-f]{{12}})?", name))
        or (top == "reports" and name == own)
    ):
        why = f"the state names it as one in {folder}"
        raise Refused(
            f"{relative} is not a folder that provision makes for {address}", why=why, hint=_HINT
        )
    return folder / relative


def build_kernel_name(address: str, folder: Path) -> str:
    """Return the name of a target's Jupyter kernel.

    Kernels of all folders share one namespace, so it contains a digest of the folder too.
    """
    return f"{build_kernel_prefix(address)}-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"


def is_kernel_of(path: Path, address: str, folder: Path) -> bool:
    """Return whether a recorded kernel was registered for an environment in this folder."""
    return path.name == build_kernel_name(address, folder)


def build_kernel_prefix(address: str) -> str:
    """Return the prefix of the names of an address's kernels."""
    return re.sub(r"[^a-z0-9._-]", "-", f"provision-{to_folder_name(address)}".lower())
