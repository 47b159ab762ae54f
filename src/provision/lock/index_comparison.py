"""A lock compared with what indexes list: whether each name, version and hash exists there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from provision.effects.conda import CondaChannel, CondaRecord
from provision.effects.packages import Index, IndexSource, ListedFile, PackageSources
from provision.lock.model import Lock, LockedFile, LockedPackage

Listings = Mapping[tuple[str, str], tuple[ListedFile, ...] | None]
"""What indexes list, by (package, index name)."""


@dataclass(frozen=True, slots=True)  # a named tuple has a method called index
class ListingNote:
    """One locked file (or package) and what its index lists of it; `index` is the index's name in
    the lock.
    """

    package: str
    version: str
    index: str
    file: str
    what: str
    help: str = ""


class IndexComparison(NamedTuple):
    """The result: packages and files that were compared, by index, and what differs, could not be
    compared, or was yanked.
    """

    compared: Mapping[str, tuple[int, int]]
    mismatches: tuple[ListingNote, ...]
    unproven: tuple[ListingNote, ...]
    yanked: tuple[ListingNote, ...]

    @property
    def verified(self) -> bool:
        """Whether every locked file is listed with its hash."""
        return not self.mismatches and not self.unproven


def named_indexes(lock: Lock) -> tuple[Index, ...]:
    """Return the named indexes of a lock with what comes from each, so that this machine's sources
    of them are those of locking.
    """
    return tuple(
        _index(name, url, lock)
        for name, url in lock.indexes.items()
        if any(package.index == name for package in lock.packages)
    )


def listing_requests(lock: Lock, sources: PackageSources) -> tuple[tuple[str, IndexSource], ...]:
    """Return each package of a lock with the source of its index on this machine."""
    by_name = {source.name: source for source in (sources.default, *sources.named)}
    return tuple(dict.fromkeys((package.name, by_name[package.index]) for package in lock.packages))


def conda_channels(lock: Lock) -> tuple[CondaChannel, ...]:
    """Return the conda channels of a lock; one without an address is the public channel of that
    name.
    """
    return tuple(
        CondaChannel(name, lock.indexes.get(name, ""))
        for name in dict.fromkeys(conda.record.channel for conda in lock.conda)
    )


def compare_with_indexes(
    lock: Lock,
    listings: Listings,
    sources: PackageSources,
    on_channels: Mapping[tuple[str, str, str], str],
) -> IndexComparison:
    """Return whether indexes list every file of a lock with its hash, and channels (sha256 by
    channel, subdir and file) what conda brings.
    """
    local = {wheel.name for wheel in sources.wheels}
    mismatches, unproven, yanked = [], [], []
    counts: dict[str, list[int]] = {}
    for package in lock.packages:
        listed = {file.name: file for file in listings[package.name, package.index] or ()}
        count = counts.setdefault(package.index, [0, 0])
        count[0] += 1
        count[1] += len(package.files)
        for file in package.files:
            there = listed.get(file.name)
            if there is None and file.name in local:
                unproven.append(
                    _note(
                        package,
                        file.name,
                        "it is among the local wheels of pip's find-links, and the index "
                        "does not list it",
                    )
                )
                continue
            if there is None or there.sha256 not in ("", file.sha256):
                mismatches.append(_mismatch(package, file, there, listings))
                continue
            if not there.sha256:
                help_ = (
                    "compare the file itself: `provision apply` installs it only when its "
                    "content has the locked hash"
                )
                unproven.append(
                    _note(package, file.name, "the index lists the file without a sha256", help_)
                )
            if there.yanked is not None:
                reason = f": {there.yanked}" if there.yanked else ""
                yanked.append(
                    _note(
                        package,
                        file.name,
                        f"yanked{reason}",
                        f"choose another version: `provision lock --upgrade {package.name}`",
                    )
                )
    for record in dict.fromkeys(conda.record for conda in lock.conda):
        count = counts.setdefault(record.channel, [0, 0])
        count[:] = count[0] + 1, count[1] + 1
        if (
            different := _of_record(
                record, on_channels.get((record.channel, record.subdir, record.file))
            )
        ) is not None:
            mismatches.append(different)
    return IndexComparison(
        {name: (packages, files) for name, (packages, files) in counts.items()},
        tuple(mismatches),
        tuple(unproven),
        tuple(yanked),
    )


def _index(name: str, url: str, lock: Lock) -> Index:
    of_index = [package for package in lock.packages if package.index == name]
    keys = {key for package in of_index for key in package.environments}
    environments = [environment for environment in lock.environments if environment.key in keys]
    flavour = next((e.flavour for e in environments if name == f"pytorch-{e.flavour}"), None)
    pins = tuple(f"{package.name}=={package.version}" for package in of_index)
    return Index(
        name,
        url,
        flavour,
        pins,
        tuple(dict.fromkeys(environment.platform for environment in environments)),
    )


def _mismatch(
    package: LockedPackage, file: LockedFile, there: ListedFile | None, listings: Listings
) -> ListingNote:
    listed = listings[package.name, package.index]
    again = f"choose what is there: `provision lock --upgrade {package.name}`"
    if there is not None:
        help_ = (
            "do not install it: restore the lock, or ask whoever keeps the index why the file "
            "changed"
        )
        return _note(
            package,
            file.name,
            f"the index lists sha256 {there.sha256}; locked is {file.sha256}",
            help_,
        )
    if listed is None:
        return _note(
            package,
            file.name,
            f"the index has no package {package.name}",
            f"check the name and the index, or {again}",
        )
    if not any(_is_of(name.name, Version(package.version)) for name in listed):
        return _note(package, file.name, f"the index has no version {package.version}", again)
    return _note(package, file.name, "the index does not list this file", again)


def _is_of(name: str, version: Version) -> bool:
    try:
        return (
            parse_wheel_filename(name)[1]
            if name.endswith(".whl")
            else parse_sdist_filename(name)[1]
        ) == version
    except (InvalidWheelFilename, InvalidSdistFilename):
        return False


def _note(package: LockedPackage, file: str, what: str, help_: str = "") -> ListingNote:
    return ListingNote(package.name, package.version, package.index, file, what, help_)


def _of_record(record: CondaRecord, sha256: str | None) -> ListingNote | None:
    if sha256 == record.sha256:
        return None
    what = (
        "the channel does not list this file"
        if sha256 is None
        else f"the channel lists sha256 {sha256 or 'none'}; locked is {record.sha256}"
    )
    return ListingNote(
        record.name,
        record.version,
        record.channel,
        record.file,
        what,
        f"choose what is there: `provision lock --upgrade {record.name}`",
    )
