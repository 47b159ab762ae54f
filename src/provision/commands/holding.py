"""Lock checks without a network: what moved in the spec since its lock was made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision import source
from provision.commands.loading import Loaded, load
from provision.commands.naming import lock_path, refuse_ambiguous
from provision.diagnostics import Severity
from provision.errors import ProvisionError
from provision.facts import load as load_facts
from provision.lock import Lock, loads, written_of

if TYPE_CHECKING:
    from provision.effects import Reader

LIMIT = 64 * 2**20
"""Longest lock in bytes."""


def moved_since(path: Path, reader: Reader) -> tuple[str, ...]:
    """Return what moved in the spec at `path` since its lock was made, () when the lock holds: no network, no resolving.

    A spec whose text has the same packages as then is not judged by the rules: that is for `lint`. Raises LockError when there is no usable lock, and
    all that loading a spec raises.
    """
    from provision.commands.lock import check_lock

    return check_lock(_as_written(path, reader) or load(path, reader), reader)


def _as_written(path: Path, reader: Reader) -> Loaded | None:
    """Return the spec without the findings of the rules when its lock was made of this very text, as far as it decides packages; else None."""
    try:
        refuse_ambiguous(path, reader)
        first, *others = source.read(path, reader)
        lock = lock_at(lock_path(path), reader)
    except ProvisionError:
        return None  # the whole way meets it again and raises it there
    if lock is None or others or first.data is None or lock.written != written_of(first.data):
        return None
    spec, problems = source.validate(first)
    if spec is None or any(found.severity is Severity.ERROR for found in (*first.diagnostics, *problems)):
        return None
    return Loaded(path, first, spec, load_facts(), ())


def lock_at(path: Path, reader: Reader) -> Lock | None:
    """Return the lock at `path`, or None when there is none; raises LockError when it is damaged."""
    return loads(reader.read(path, LIMIT).decode("utf-8", "replace"), str(path)) if reader.exists(path) else None
