"""Versions that a damaged lock still names: of each side of a merge, of an older format, or of a
file that was changed by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from packaging.version import Version

from provision.facts.versions import parse_version
from provision.lock.document import SCHEMA, find_conflict_line, lock_format_version
from provision.lock.integrity import PACKAGE_NAME_PATTERN
from provision.lock.model import Lock, LockedEnvironment, LockedPackage
from provision.lock.wheels import PLATFORMS
from provision.spec import Spec

_SCHEMA = re.compile(r'"schema"\s*:\s*"(provision\.lock/[0-9]+)"')


class SalvagedVersions(NamedTuple):
    """What could be read of a damaged lock: the versions to keep, as a lock without files, and
    those that each side named, by package.
    """

    keep: Lock
    sides: tuple[Mapping[str, tuple[str, ...]], ...]


class RepairSummary(NamedTuple):
    """What became of the versions of a damaged lock: how many stay, and a line for each package
    whose version is another one now.
    """

    kept: int
    changed: tuple[str, ...]


def salvage_versions(text: str, spec: Spec) -> SalvagedVersions | None:
    """Return the versions that a damaged lock names, or None when it is not a lock of this format
    or an older one.

    When two sides of a merge name different versions of a package, the ones that the spec admits
    are taken, then the newest. Hashes, addresses and what
    conda brings are not taken from such a file.
    """
    found = _SCHEMA.search(text)
    number = lock_format_version(found[1]) if found else None
    if number is None or number > (lock_format_version(SCHEMA) or 0):
        return None
    rows = [tuple(_packages(side)) for side in _sides(text)]
    environments = {key for side in rows for package in side for key in package.environments}
    named = tuple(_environment(key) for key in sorted(environments))
    keep = Lock({}, spec.python, named, {}, {}, tuple(_merge_sides(rows, spec)))
    return SalvagedVersions(keep, tuple(_versions(side) for side in rows))


def summarize_repair(salvaged: SalvagedVersions, lock: Lock) -> RepairSummary:
    """Return what became of salvaged versions in the lock that was made with them."""
    now = _versions(lock.packages)
    kept, changed = 0, []
    for name in sorted({*now, *(name for side in salvaged.sides for name in side)}):
        before = tuple(dict.fromkeys(side[name] for side in salvaged.sides if name in side))
        if before == (now.get(name),):
            kept += 1
        elif len(before) > 1:
            changed.append(
                f"{name}: {' on one side, '.join(_listed(one) for one in before)} on the "
                f"other; now {_listed(now.get(name, ()))}"
            )
        elif name not in now:
            changed.append(f"{name} {_listed(before[0])} is not needed")
        else:
            changed.append(
                f"{name} {_listed(before[0])} -> {_listed(now[name])}"
                if before
                else f"{name} {_listed(now[name])} is added"
            )
    return RepairSummary(kept, tuple(changed))


def _listed(versions: Iterable[str]) -> str:
    return " and ".join(versions) or "left out"


def _sides(text: str) -> tuple[str, ...]:
    """Return the text as it was on both sides of a merge, or the text itself when it has no
    conflict markers.
    """
    if find_conflict_line(text) is None:
        return (text,)
    sides: tuple[list[str], list[str]] = ([], [])
    wanted: tuple[int, ...] = (0, 1)
    for line in text.splitlines():
        if line.startswith("<<<<<<< "):
            wanted = (0,)
        elif line.startswith("||||||| ") and wanted == (0,):
            wanted = ()
        elif line.startswith("=======") and len(wanted) < 2:
            wanted = (1,)
        elif line.startswith(">>>>>>> "):
            wanted = (0, 1)
        else:
            for side in wanted:
                sides[side].append(line)
    return tuple(dict.fromkeys("\n".join(side) for side in sides))


def _packages(text: str) -> Iterator[LockedPackage]:
    """Yield the packages that a text names, without their files: from the whole document, or line
    by line when it is not one.
    """
    try:
        document = json.loads(text)
        rows, keys = document["packages"], tuple(document["environments"])
    except (ValueError, RecursionError, KeyError, TypeError):
        rows, keys = (
            [*_rows(text)],
            tuple(
                dict.fromkeys(re.findall(r'^\s*"([a-z0-9_-]+)": \{"platform"', text, re.MULTILINE))
            ),
        )
    known = tuple(key for key in keys if isinstance(key, str) and _platform(key))
    for row in rows if isinstance(rows, list) else ():
        package = _package(row, known)
        if package is not None:
            yield package


def _rows(text: str) -> Iterator[Any]:
    for line in text.splitlines():
        if line.lstrip().startswith('{"name":'):
            try:
                yield json.loads(line.strip().rstrip(","))
            except (ValueError, RecursionError):
                continue


def _package(row: Any, keys: tuple[str, ...]) -> LockedPackage | None:
    if not isinstance(row, dict) or "build" in row:
        return None
    name, version, index = (row.get(part) for part in ("name", "version", "index"))
    if (
        not (isinstance(name, str) and isinstance(version, str) and isinstance(index, str))
        or not PACKAGE_NAME_PATTERN.fullmatch(name)
        or parse_version(version) is None
    ):
        return None
    held = row.get("in", keys)
    environments = (
        tuple(key for key in held if key in keys) if isinstance(held, list | tuple) else keys
    )
    return LockedPackage(name, str(Version(version)), index, environments or keys, (), ())


def _environment(key: str) -> LockedEnvironment:
    platform = _platform(key) or key
    return LockedEnvironment(
        key,
        platform,
        key.removeprefix(platform).split("-")[1] if key != platform else None,
        None,
        None,
        "",
    )


def _platform(key: str) -> str | None:
    return next(
        (platform for platform in PLATFORMS if key == platform or key.startswith(f"{platform}-")),
        None,
    )


def _merge_sides(rows: list[tuple[LockedPackage, ...]], spec: Spec) -> Iterator[LockedPackage]:
    sides = [_by_name(side) for side in rows]
    for name in sorted({name for side in sides for name in side}):
        yield from max(
            (side[name] for side in sides if name in side),
            key=lambda packages: _rank(packages, spec),
        )


def _rank(packages: list[LockedPackage], spec: Spec) -> tuple[bool, Version]:
    versions = [Version(package.version) for package in packages]
    lines = [line.specifiers for line in spec.packages if line.key == packages[0].name]
    admitted = all(
        line.contains(version, prereleases=True) for line in lines for version in versions
    )
    return admitted, max(versions)


def _by_name(packages: Iterable[LockedPackage]) -> dict[str, list[LockedPackage]]:
    found: dict[str, list[LockedPackage]] = {}
    for package in packages:
        found.setdefault(package.name, []).append(package)
    return found


def _versions(packages: Iterable[LockedPackage]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for package in packages:
        found.setdefault(package.name, set()).add(package.version)
    return {name: tuple(sorted(versions, key=Version)) for name, versions in found.items()}
