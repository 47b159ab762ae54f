"""Reads all releases of the packages, several at a time, and finds the windows between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from packaging.version import Version

from remaking.declaring import linux_wheel
from remaking.wheels import Shelf, each
from windows.comparing import Window, compare
from windows.confirming import Confirmation
from windows.packages import SINCE, Package
from windows.reading import Located, Name, Needs, Readings, Release, release_of
from windows.source_tree import fetch_sources

ReleaseNeeds = Mapping[Version, Needs]
Locations = Mapping[Version, Mapping[Name, Located]]


def gather(
    shelf: Shelf,
    packages: Sequence[Package],
    cache: Path,
    report: Callable[[str], None],
    run_all: Callable[..., Iterable[Any]] = map,
) -> tuple[list[Window], dict[str, list[Release]]]:
    """Return the windows between packages, and the releases that were read of each.

    Args:
        shelf: the wheels of an index.
        packages: the packages to read; those without releases are left out.
        cache: the folder for sources and readings.
        report: receives a line for each package that was read.
        run_all: `map`, or the map of a pool of processes.
    """
    fetched = {package: _fetch(shelf, package, cache) for package in packages}
    releases = {package.name: found for package, found in fetched.items() if found}
    read = [package for package in packages if package.name in releases]
    report(f"{sum(map(len, releases.values()))} releases of {len(releases)} packages")
    found = run_all(partial(_needs, cache), read, [releases[package.name] for package in read])
    needs: dict[str, ReleaseNeeds] = {}
    for package, of_package in zip(read, found, strict=True):
        needs[package.name] = of_package
        report(f"{package.name}: {sum(len(item.names) for item in of_package.values())} uses")
    names = {of: sorted(_wanted(needs, of)) for of in releases}
    used = [of for of in releases if names[of]]
    located = run_all(
        partial(_locate, cache), [releases[of] for of in used], [names[of] for of in used]
    )
    windows: list[Window] = []
    confirmation = Confirmation(cache)
    for of, locations in zip(used, located, strict=True):
        before = len(windows)
        for name, own in releases.items():
            if name != of:
                windows += compare(own, needs[name], releases[of], locations, confirmation)
        report(f"{of}: {len(names[of])} names, {len(windows) - before} windows")
    return windows, releases


def _fetch(shelf: Shelf, package: Package, cache: Path) -> list[Release]:
    """Return the releases of a package that can be read; their sources are in the cache."""
    wheels = {
        version: linux_wheel(files) for version, files in shelf.releases(package.name).items()
    }
    sources = shelf.sources(package.name) if package.sources else {}
    files = sorted({**sources, **wheels}.items())
    chosen = [file for _, file in files if file.uploaded >= SINCE]
    module = package.module.partition(".")[0]
    each(lambda file: fetch_sources(file, shelf.index, cache, module), chosen)
    return [release_of(package.name, file) for file in chosen]


def _needs(cache: Path, package: Package, releases: Sequence[Release]) -> ReleaseNeeds:
    readings = Readings(cache)
    return {release.version: readings.needs(release, package) for release in releases}


def _wanted(needs: Mapping[str, ReleaseNeeds], of: str) -> set[Name]:
    wanted: set[Name] = set()
    for releases in needs.values():
        for release in releases.values():
            wanted |= {(name.path, name.argument) for name in release.names if name.of == of}
    return wanted


def _locate(cache: Path, releases: Sequence[Release], names: Sequence[Name]) -> Locations:
    """Return where releases have names.

    The newest patch of each minor is read first, then all patches between two releases that differ.
    A release between two that agree has what they have.
    """
    readings = Readings(cache)
    located = {
        release.version: readings.locate(release, names) for release in _newest_patches(releases)
    }
    while True:
        between = [
            release
            for first, last in _neighbours(releases, located)
            if _differ(located[first.version], located[last.version], names)
            for release in releases
            if first.version < release.version < last.version
        ]
        if not between:
            break
        located |= {release.version: readings.locate(release, names) for release in between}
    known = dict(located)
    for release in releases:
        if release.version not in known:
            located[release.version] = known[min(at for at in known if at > release.version)]
    return located


def _newest_patches(releases: Sequence[Release]) -> Iterator[Release]:
    yield releases[0]
    for _, patches in groupby(releases, key=lambda release: release.version.release[:2]):
        yield [*patches][-1]


def _neighbours(
    releases: Sequence[Release], located: Iterable[Version]
) -> Iterator[tuple[Release, Release]]:
    known = set(located)
    yield from pairwise(release for release in releases if release.version in known)


def _differ(
    first: Mapping[Name, Located], last: Mapping[Name, Located], names: Iterable[Name]
) -> bool:
    return any(first[name].state != last[name].state for name in names)
