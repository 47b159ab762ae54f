"""Comparison of a lock with its indexes: every name, version and hash must be listed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from packaging.version import Version

from provision.effects.conda import CondaChannel
from provision.effects.packages import IndexSource, ListedFile, NamedIndex, PackageSources
from provision.lock.model import Lock, LockedFile, LockedPackage
from provision.lock.target_view import to_index
from provision.lock.wheels import file_identity, parse_file_name

Listings = Mapping[tuple[str, str], tuple[ListedFile, ...] | None]
"""Files that indexes list by (package, index name); None for a package that is not there."""
_ONLY_LOCAL = "it is a local wheel from pip's find-links, and the index does not list it"
_COMPARE_HINT = (
    "no action is needed: `provision apply` installs the file only if its content has the "
    "locked hash"
)


@dataclass(frozen=True, slots=True)  # a named tuple has a method called index
class ListingNote:
    """A locked file or package and a remark on its listing; `index` is its name in the lock."""

    package: str
    version: str
    index: str
    file: str
    what: str
    help: str = ""


class IndexComparison(NamedTuple):
    """The numbers of compared packages and files by index, and the files to remark on."""

    compared: Mapping[str, tuple[int, int]]
    mismatches: tuple[ListingNote, ...]
    unproven: tuple[ListingNote, ...]
    yanked: tuple[ListingNote, ...]

    @property
    def verified(self) -> bool:
        """True if every locked file is listed with its hash."""
        return not self.mismatches and not self.unproven


def named_indexes(lock: Lock) -> tuple[NamedIndex, ...]:
    """Return the named indexes of a lock with the packages from each.

    With them this machine's sources are the same as those of locking.
    """
    return tuple(
        to_index(name, url, lock.packages, lock.environments)
        for name, url in lock.indexes.items()
        if any(package.index == name for package in lock.packages)
    )


def listing_requests(lock: Lock, sources: PackageSources) -> tuple[tuple[str, IndexSource], ...]:
    """Return each package of a lock with the source of its index on this machine."""
    by_name = {source.name: source for source in (sources.default, *sources.named)}
    pairs = ((package.name, by_name[package.index]) for package in lock.from_indexes)
    return tuple(dict.fromkeys(pairs))


def conda_channels(lock: Lock) -> tuple[CondaChannel, ...]:
    """Return the conda channels of a lock; one without an address is the public channel."""
    return tuple(
        CondaChannel(name, lock.indexes.get(name, ""))
        for name in dict.fromkeys(conda.record.channel for conda in lock.conda)
    )


def compare_with_indexes(
    lock: Lock,
    listings: Listings,
    sources: PackageSources,
    channel_hashes: Mapping[tuple[str, str, str], str],
) -> IndexComparison:
    """Return whether indexes and channels list every file of a lock with its hash.

    Args:
        lock: the lock.
        listings: the files that the indexes list.
        sources: the indexes and wheels of this machine.
        channel_hashes: sha256 by channel, subdir and file.
    """
    local_wheels = {file_identity(wheel.name) for wheel in sources.wheels}
    mismatches, unproven, yanked = [], [], []
    package_counts, file_counts = Counter[str](), Counter[str]()
    for package in lock.from_indexes:
        listed = listings[package.name, package.index] or ()
        package_counts[package.index] += 1
        file_counts[package.index] += len(package.files)
        for file in package.files:
            entry = _find_listed(file, listed)
            if entry is None and file_identity(file.name) in local_wheels:
                unproven.append(_make_note(package, file.name, _ONLY_LOCAL))
            elif entry is None or entry.sha256 not in ("", file.sha256):
                mismatches.append(_describe_mismatch(package, file, entry, listings))
            else:
                if not entry.sha256:
                    problem = "the index lists the file without a sha256"
                    unproven.append(_make_note(package, file.name, problem, _COMPARE_HINT))
                if entry.yanked is not None:
                    reason = f": {entry.yanked}" if entry.yanked else ""
                    hint = f"choose another version: `provision lock --upgrade {package.name}`"
                    yanked.append(_make_note(package, file.name, f"yanked{reason}", hint))
    for record in dict.fromkeys(conda.record for conda in lock.conda):
        package_counts[record.channel] += 1
        file_counts[record.channel] += 1
        sha256 = channel_hashes.get((record.channel, record.subdir, record.file))
        if sha256 != record.sha256:
            problem = "the channel does not list this file"
            if sha256 is not None:
                problem = (
                    f"the channel lists sha256 {sha256 or 'none'}, but the lock has {record.sha256}"
                )
            hint = f"choose a listed version: `provision lock --upgrade {record.name}`"
            locked = (record.name, record.version, record.channel, record.file)
            mismatches.append(ListingNote(*locked, problem, hint))
    return IndexComparison(
        {name: (count, file_counts[name]) for name, count in package_counts.items()},
        tuple(mismatches),
        tuple(unproven),
        tuple(yanked),
    )


def _find_listed(file: LockedFile, listed: tuple[ListedFile, ...]) -> ListedFile | None:
    """Return the listed file that a locked file is, None if it is not listed.

    An index may list several spellings of one name; the one with the locked hash is meant.
    """
    same = [entry for entry in listed if entry.name == file.name]
    if not same:
        identity = file_identity(file.name)
        same = [entry for entry in listed if file_identity(entry.name) == identity]
    return next((entry for entry in same if entry.sha256 == file.sha256), next(iter(same), None))


def _describe_mismatch(
    package: LockedPackage, file: LockedFile, entry: ListedFile | None, listings: Listings
) -> ListingNote:
    listed = listings[package.name, package.index]
    hint = f"choose a listed version: `provision lock --upgrade {package.name}`"
    if entry is not None:
        problem = f"the index lists sha256 {entry.sha256}, but the lock has {file.sha256}"
        hint = (
            "do not install it: restore the lock, or ask the maintainer of the index why the file "
            "changed"
        )
    elif listed is None:
        problem = f"the index has no package {package.name}"
        hint = f"check the package name and the index, or {hint}"
    else:
        problem = f"the index has no version {package.version}"
        for other in listed:
            parsed = parse_file_name(other.name)
            if parsed is not None and parsed[1] == Version(package.version):
                problem = "the index does not list this file"
    return _make_note(package, file.name, problem, hint)


def _make_note(package: LockedPackage, file: str, problem: str, hint: str = "") -> ListingNote:
    return ListingNote(package.name, package.version, package.index, file, problem, hint)
