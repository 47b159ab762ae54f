"""Compare a lock with the indexes that it names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from provision.commands.loading import load
from provision.commands.lock import check_lock, read_lock
from provision.effects import Reader, Sources, Tell
from provision.errors import LockError
from provision.lock.published import Published, channels_of, compare, indexes_of, questions


class Verified(NamedTuple):
    """What indexes list of a lock, where the lock is, and where the indexes are on this machine."""

    published: Published
    lock: Path
    sources: Sources


def verify_lock(path: Path, reader: Reader, tell: Tell) -> Verified:
    """Return whether indexes list every file of the lock for the spec at `path`, after all that `lock --check` compares.

    Raises LockError when the lock is missing, stale or refused, NetworkError when an index cannot be asked.
    """
    loaded = load(path, reader)
    moved = check_lock(loaded, reader)
    if moved:
        raise LockError(f"{loaded.lock_path} does not hold", why="\n".join(moved), hint="`provision lock` renews it; then verify it")
    lock = read_lock(loaded, reader)
    if lock is None:
        raise AssertionError
    sources = reader.sources(indexes_of(lock), lock.python)
    for note in sources.notes:
        tell(note)
    asked = questions(lock, sources)
    tell(f"asking the indexes for {len(asked)} packages" + (f", and conda channels for {len(lock.conda)}" if lock.conda else ""))
    channels = channels_of(lock)
    on_channels = reader.listed_conda(tuple(conda.record for conda in lock.conda), channels) if channels else {}
    return Verified(compare(lock, reader.listed_files(asked), sources, on_channels), loaded.lock_path, sources)
