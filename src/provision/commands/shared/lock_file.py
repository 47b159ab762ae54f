"""Reads the lock file next to a spec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision.lock import Lock, loads

if TYPE_CHECKING:
    from provision.effects.system import Reader

MAX_LOCK_BYTES = 64 * 2**20
"""Size of the largest lock in bytes."""


def read_lock_file(path: Path, reader: Reader) -> Lock | None:
    """Return the lock at `path`, None if there is none.

    Raises:
        LockError: it is damaged.
    """
    if not reader.exists(path):
        return None
    return loads(reader.read(path, MAX_LOCK_BYTES).decode("utf-8", "replace"), str(path))
