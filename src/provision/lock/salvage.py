"""Versions in a damaged lock: both sides of a merge, an older format, or a change by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from packaging.version import Version

from provision.facts.versions import parse_version
from provision.lock.integrity import PACKAGE_NAME_PATTERN
from provision.lock.model import (
    FORMAT_VERSION,
    Lock,
    LockedEnvironment,
    LockedPackage,
    find_conflict_line,
    lock_format_version,
)
from provision.lock.wheels import PLATFORMS
from provision.spec import Spec

_SCHEMA = re.compile(r'"schema"\s*:\s*"(provision\.lock/[0-9]+)"')


class SalvagedVersions(NamedTuple):
    """The versions to keep of a damaged lock, as a lock without files, and those of each side."""

    keep: Lock
    sides: tuple[Mapping[str, tuple[str, ...]], ...]


class RepairSummary(NamedTuple):
    """The number of salvaged versions that stay, and a line for each that changed."""

    kept: int
    changed: tuple[str, ...]


def salvage_versions(text: str, spec: Spec) -> SalvagedVersions | None:
    """Return the versions of a damaged lock of this format or an older one, else None.

    Of two sides of a merge, the version that the spec admits is kept, then the newest. Hashes,
    addresses and conda packages are not read from such a file.
    """
    schema = _SCHEMA.search(text)
    number = lock_format_version(schema[1]) if schema else None
    if number is None or number > FORMAT_VERSION:
        return None
    rows = [tuple(_read_packages(side)) for side in _split_sides(text)]
    environments = {key for side in rows for package in side for key in package.environments}
    named = []
    for key in sorted(environments):
        platform = _platform_of(key) or key
        flavour = key.removeprefix(platform).split("-")[1] if key != platform else None
        named.append(LockedEnvironment(key, platform, flavour, None, None, ""))
    keep = Lock({}, spec.python, tuple(named), {}, {}, tuple(_merge_sides(rows, spec)))
    return SalvagedVersions(keep, tuple(_versions_by_name(side) for side in rows))


def summarize_repair(salvaged: SalvagedVersions, lock: Lock) -> RepairSummary:
    """Return the changes of salvaged versions in the lock that was made with them."""
    now = _versions_by_name(lock.packages)
    kept, changed = 0, []
    for name in sorted({*now, *(name for side in salvaged.sides for name in side)}):
        before = tuple(dict.fromkeys(side[name] for side in salvaged.sides if name in side))
        if before == (now.get(name),):
            kept += 1
        elif len(before) > 1:
            sides = " on one side, ".join(map(_join_versions, before))
            changed.append(f"{name}: {sides} on the other; now {_join_versions(now.get(name, ()))}")
        elif name not in now:
            changed.append(f"{name} {_join_versions(before[0])} is no longer needed")
        elif before:
            changed.append(f"{name} {_join_versions(before[0])} -> {_join_versions(now[name])}")
        else:
            changed.append(f"{name} {_join_versions(now[name])} is added")
    return RepairSummary(kept, tuple(changed))


def _join_versions(versions: Iterable[str]) -> str:
    return " and ".join(versions) or "left out"


def _split_sides(text: str) -> tuple[str, ...]:
    """Return the text on both sides of a merge, or the text itself without conflict markers."""
    if find_conflict_line(text) is None:
        return (text,)
    sides: tuple[list[str], list[str]] = ([], [])
    written_sides: tuple[int, ...] = (0, 1)
    for line in text.splitlines():
        if line.startswith("<<<<<<< "):
            written_sides = (0,)
        elif line.startswith("||||||| ") and written_sides == (0,):
            written_sides = ()
        elif line.startswith("=======") and len(written_sides) < 2:
            written_sides = (1,)
        elif line.startswith(">>>>>>> "):
            written_sides = (0, 1)
        else:
            for side in written_sides:
                sides[side].append(line)
    return tuple(dict.fromkeys("\n".join(side) for side in sides))


def _read_packages(text: str) -> Iterator[LockedPackage]:
    """Yield the packages of a text without their files, line by line if it is not valid JSON."""
    try:
        document = json.loads(text)
        rows, keys = document["packages"], tuple(document["environments"])
    except (ValueError, RecursionError, KeyError, TypeError):
        rows = list(_read_rows(text))
        keys = tuple(re.findall(r'^\s*"([a-z0-9_-]+)": \{"platform"', text, re.MULTILINE))
    known = tuple(key for key in dict.fromkeys(keys) if isinstance(key, str) and _platform_of(key))
    for row in rows if isinstance(rows, list) else ():
        package = _parse_package(row, known)
        if package is not None:
            yield package


def _read_rows(text: str) -> Iterator[Any]:
    for line in text.splitlines():
        if line.lstrip().startswith('{"name":'):
            with suppress(ValueError, RecursionError):
                yield json.loads(line.strip().rstrip(","))


def _parse_package(row: Any, keys: tuple[str, ...]) -> LockedPackage | None:
    if not isinstance(row, dict) or "build" in row:
        return None
    name, version, index = (row.get(part) for part in ("name", "version", "index"))
    if (
        not (isinstance(name, str) and isinstance(version, str) and isinstance(index, str))
        or not PACKAGE_NAME_PATTERN.fullmatch(name)
        or parse_version(version) is None
    ):
        return None
    listed = row.get("in")
    environments: tuple[str, ...] = ()
    if isinstance(listed, list):
        environments = tuple(key for key in listed if key in keys)
    return LockedPackage(name, str(Version(version)), index, environments or keys, (), ())


def _platform_of(key: str) -> str | None:
    return next((name for name in PLATFORMS if f"{key}-".startswith(f"{name}-")), None)


def _merge_sides(rows: list[tuple[LockedPackage, ...]], spec: Spec) -> Iterator[LockedPackage]:
    def rank(packages: list[LockedPackage]) -> tuple[bool, Version]:
        versions = [Version(package.version) for package in packages]
        lines = [line.specifiers for line in spec.packages if line.key == packages[0].name]
        is_admitted = all(
            line.contains(version, prereleases=True) for line in lines for version in versions
        )
        return is_admitted, max(versions)

    sides = [_group_by_name(side) for side in rows]
    for name in sorted({name for side in sides for name in side}):
        yield from max((side[name] for side in sides if name in side), key=rank)


def _group_by_name(packages: Iterable[LockedPackage]) -> dict[str, list[LockedPackage]]:
    by_name: dict[str, list[LockedPackage]] = {}
    for package in packages:
        by_name.setdefault(package.name, []).append(package)
    return by_name


def _versions_by_name(packages: Iterable[LockedPackage]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(sorted({package.version for package in group}, key=Version))
        for name, group in _group_by_name(packages).items()
    }
