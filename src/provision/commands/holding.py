"""Say whether a lock holds: by the spec's text where that is enough, else by the spec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision import source
from provision.commands.naming import lock_path, refuse_ambiguous
from provision.diagnostics import Severity
from provision.errors import ProvisionError
from provision.lock import Lock, loads, written_of

if TYPE_CHECKING:
    from provision.effects import Reader

_LIMIT = 64 * 2**20


def moved_since(path: Path, reader: Reader) -> tuple[str, ...]:
    """Return what moved in the spec at `path` since its lock was made, () when the lock holds: no network, no resolving.

    Where the text says of packages what it said then, the spec is not looked at any further: that it is free of errors is for `lint` to say. Else it is
    loaded, with all that this raises; LockError when there is no usable lock.
    """
    if holds_as_written(path, reader):
        return ()
    from provision.commands.loading import load  # here: the model takes longer to load than all of the above
    from provision.commands.lock import check_lock

    return check_lock(load(path, reader), reader)


def holds_as_written(path: Path, reader: Reader) -> bool:
    """Tell whether the lock was made of this very text, as far as it decides packages. False means nothing: it may still hold."""
    try:
        refuse_ambiguous(path, reader)
        documents = source.read(path, reader)
        lock = lock_at(lock_path(path), reader)
    except ProvisionError:
        return False  # what stands in the way is met again on the long way, and said there
    first, *others = documents
    if lock is None or others or first.data is None or any(found.severity is Severity.ERROR for found in first.diagnostics):
        return False
    return lock.written == written_of(first.data)


def lock_at(path: Path, reader: Reader) -> Lock | None:
    """Return the lock at `path`, or None when there is none; raises LockError when it is damaged."""
    return loads(reader.read(path, _LIMIT).decode("utf-8", "replace"), str(path)) if reader.exists(path) else None
