"""Compare a lock with the indexes that it names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from provision.commands.lock import check_lock, read_lock
from provision.commands.shared.load import load_spec
from provision.effects.packages import PackageSources
from provision.effects.system import ProgressCallback, Reader
from provision.errors import LockError
from provision.lock.index_comparison import (
    IndexComparison,
    compare_with_indexes,
    conda_channels,
    listing_requests,
    named_indexes,
)


class LockVerification(NamedTuple):
    """What indexes list of a lock, where the lock is, and where the indexes are on this machine."""

    published: IndexComparison
    lock: Path
    sources: PackageSources


def verify_lock(path: Path, reader: Reader, tell: ProgressCallback) -> LockVerification:
    """Return whether indexes list every file of the lock for the spec at `path`, after all that
    `lock --check` compares.

    Raises LockError when the lock is missing, stale or refused, NetworkError when an index
    cannot be asked.
    """
    loaded = load_spec(path, reader)
    moved = check_lock(loaded, reader)
    if moved:
        raise LockError(
            f"{loaded.lock_path} does not hold",
            why="\n".join(moved),
            hint="`provision lock` renews it; then verify it",
        )
    lock = read_lock(loaded, reader)
    if lock is None:
        raise AssertionError
    sources = reader.find_package_sources(named_indexes(lock), lock.python)
    for note in sources.notes:
        tell(note)
    asked = listing_requests(lock, sources)
    tell(
        f"asking the indexes for {len(asked)} packages"
        + (f", and conda channels for {len(lock.conda)}" if lock.conda else "")
    )
    channels = conda_channels(lock)
    on_channels = (
        reader.list_conda_files(tuple(conda.record for conda in lock.conda), channels)
        if channels
        else {}
    )
    return LockVerification(
        compare_with_indexes(lock, reader.list_index_files(asked), sources, on_channels),
        loaded.lock_path,
        sources,
    )
