"""Compares a lock with its indexes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from provision.commands.lock import check_lock
from provision.commands.shared.load import load_spec
from provision.commands.shared.lock_file import require_lock
from provision.effects.packages import PackageSources
from provision.effects.system import Notice, ProgressCallback, Reader
from provision.errors import LockError
from provision.lock.index_comparison import (
    IndexComparison,
    Listings,
    compare_with_indexes,
    conda_channels,
    listing_requests,
    named_indexes,
)
from provision.spelling import pluralize


class LockVerification(NamedTuple):
    """A comparison with indexes, the path of the lock, and this machine's indexes."""

    published: IndexComparison
    lock: Path
    sources: PackageSources


def verify_lock(path: Path, reader: Reader, progress: ProgressCallback) -> LockVerification:
    """Return whether indexes list every file of the lock for the spec at `path`.

    Raises:
        LockError: the lock is missing, stale or refused, as by `lock --check`.
        NetworkError: an index cannot be reached.
    """
    return verify_lock_with_listings(path, reader, progress)[0]


def verify_lock_with_listings(
    path: Path, reader: Reader, progress: ProgressCallback
) -> tuple[LockVerification, Listings]:
    """Return what `verify_lock` does, and the files that the indexes list."""
    loaded = load_spec(path, reader)
    if changes := check_lock(loaded, reader):
        raise LockError(
            f"{loaded.lock_path} is out of date",
            why="\n".join(changes),
            hint="update it with `provision lock`, then run this command again",
        )
    lock = require_lock(loaded, reader)
    sources = reader.find_package_sources(named_indexes(lock), lock.python)
    for note in sources.notes:
        progress(Notice(note))
    requests = listing_requests(lock, sources)
    conda = f", and conda channels for {len(lock.conda)}" if lock.conda else ""
    progress(f"querying the indexes for {pluralize(len(requests), 'package')}{conda}")
    channel_hashes: Mapping[tuple[str, str, str], str] = {}
    if channels := conda_channels(lock):
        records = tuple(package.record for package in lock.conda)
        channel_hashes = reader.list_conda_files(records, channels)
    listings = reader.list_index_files(requests)
    comparison = compare_with_indexes(lock, listings, sources, channel_hashes)
    return LockVerification(comparison, loaded.lock_path, sources), listings
