"""All releases of much-used packages: the Pythons they run on, and what they require.

Sets of releases are integers: bit i stands for release i, oldest first, and the highest bit for
the releases that are newer than the table.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, Specifier
from packaging.version import Version

from provision.facts.fact_tables import CompiledTables
from provision.facts.tables_in_use import lazy_folder
from provision.facts.versions import (
    parse_specifiers,
    parse_version,
    require_version,
    version_bounds,
)

_CLAUSE = re.compile(r"[<>=!~]")


class ReleaseGroup(NamedTuple):
    """Consecutive releases with the same content, as a set."""

    releases: int
    python: str
    wheels: str
    requires: str


class PackageReleases:
    """The releases of a package, oldest first."""

    def __init__(self, name: str, rows: Sequence[Sequence[str]]) -> None:
        """Read the rows of a package: its name, the releases, Pythons, wheels and requirements."""
        self.name = name
        versions: list[str] = []
        groups = []
        for _, releases, python, wheels, requires in rows:
            first = len(versions)
            versions += releases.split()
            content = (1 << len(versions)) - (1 << first)
            groups.append(ReleaseGroup(content, python, wheels, requires))
        self.versions = tuple(versions)
        self.groups = tuple(groups)
        self.newer = 1 << len(versions)
        self.without_wheel = sum(
            group.releases for group in groups if group.wheels in ("none", "other")
        )
        self._admitted: dict[str, int | None] = {}
        self._on_python: dict[tuple[str, bool], int] = {}
        self._certain: dict[tuple[int, str], tuple[tuple[str, str, int], ...]] = {}

    def admitted(self, specifiers: str) -> int | None:
        """Return the releases that specifiers admit.

        None if they name one that the table does not have, such as a pre-release.
        """
        if specifiers not in self._admitted:
            self._admitted[specifiers] = self._find_admitted(specifiers)
        return self._admitted[specifiers]

    def on_python(self, python: str, *, may_build: bool) -> int:
        """Return the releases that can be installed on a Python, newer ones among them.

        Releases without a wheel for Linux are among them.
        """
        key = (python, may_build)
        if key not in self._on_python:
            found = self.newer
            for group in self.groups:
                if _admits_python(group.python, python) and (
                    may_build or has_wheel(group.wheels, python)
                ):
                    found |= group.releases
            self._on_python[key] = found
        return self._on_python[key]

    def groups_of(self, releases: int) -> tuple[ReleaseGroup, ...]:
        """Return the groups that have at least one of the releases, newest first."""
        return tuple(group for group in reversed(self.groups) if group.releases & releases)

    def certain_requirements(
        self, releases: int, python: str, table: Mapping[str, PackageReleases]
    ) -> tuple[tuple[str, str, int], ...]:
        """Return what each of some releases requires on a Python.

        Args:
            releases: the releases, of which there is at least one.
            python: a minor version, as in "3.11".
            table: the releases of all packages.

        Returns:
            Packages with the specifiers that the newest release has for them, and the releases that
            the specifiers of any release admit.
        """
        key = (releases, python)
        if key not in self._certain:
            required = [
                requirements_on(group.requires, python) for group in self.groups_of(releases)
            ]
            self._certain[key] = tuple(_find_common(required, table))
        return self._certain[key]

    def newest_of(self, releases: int) -> str:
        """Return the newest of the releases, "" if there are none in the table."""
        number = (releases & ~self.newer).bit_length()
        return self.versions[number - 1] if number else ""

    def around(self, version: Version) -> tuple[str, ...]:
        """Return the releases next to a version that the table does not have, the older first."""
        first, last = self._places(version)
        return self.versions[max(0, first - 1) : last + 1]

    def _find_admitted(self, specifiers: str) -> int | None:
        found = (self.newer << 1) - 1
        for clause in parse_specifiers(specifiers):
            admitted = self._clause(clause)
            if admitted is None:
                return None
            found &= admitted
        return found

    def _clause(self, clause: Specifier) -> int | None:
        operator, text = clause.operator, clause.version
        version = parse_version(text.removesuffix(".*"))
        if version is None:
            return None
        everything = (self.newer << 1) - 1
        if operator == "~=" or text.endswith(".*"):
            low, high = version_bounds(parse_specifiers(str(clause).replace("!=", "==")))
            inside = self._from(low or version) & self._below(high or version)
            return everything & ~inside | self.newer if operator == "!=" else inside
        first, last = self._places(version)
        if operator == ">=":
            return self._from(version)
        if operator == "<":
            return self._below(version)
        own = (1 << last) - (1 << first)
        if operator == ">":
            return self._from(version) & ~own
        if operator == "<=":
            return self._below(version) | own
        if operator == "!=":
            return everything & ~own
        if own:
            return own
        return self.newer if first == len(self.versions) else None

    def _places(self, version: Version) -> tuple[int, int]:
        return (
            bisect_left(self.versions, version, key=require_version),
            bisect_right(self.versions, version, key=require_version),
        )

    def _from(self, version: Version) -> int:
        first, _ = self._places(version)
        return (self.newer << 1) - (1 << first)

    def _below(self, version: Version) -> int:
        first, last = self._places(version)
        is_newer = first == last == len(self.versions)
        return (1 << first) - 1 | (self.newer if is_newer else 0)


def _find_common(
    required: Sequence[Mapping[str, str] | None], table: Mapping[str, PackageReleases]
) -> Iterator[tuple[str, str, int]]:
    for of, specifiers in (required[0] or {}).items():
        other = table.get(of)
        admitted = 0
        for each in required:
            one = other.admitted(each[of]) if other and each and of in each else None
            if one is None:
                break
            admitted |= one
        else:
            yield of, specifiers, admitted


def load_releases(folder: Path | None = None) -> Mapping[str, PackageReleases]:
    """Return the releases of each package in the table, by its name.

    Raises:
        ProvisionError: the table is missing or damaged.
    """
    return _load_releases(folder or lazy_folder())


@lru_cache(maxsize=8)
def _load_releases(folder: Path) -> Mapping[str, PackageReleases]:
    return CompiledTables(folder / "releases.json").build(_LazyReleases)


class _LazyReleases(Mapping[str, PackageReleases]):
    """The packages of the table; the rows of one are read when it is looked up first."""

    def __init__(self, compiled: CompiledTables) -> None:
        self._rows: dict[str, list[list[str]]] = {}
        for row in compiled.value("rows"):
            self._rows.setdefault(row[0], []).append(row)
        self._known: dict[str, PackageReleases] = {}

    def __getitem__(self, name: str) -> PackageReleases:
        if name not in self._known:
            self._known[name] = PackageReleases(name, self._rows[name])
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


@lru_cache(maxsize=4096)
def requirements_on(requires: str, python: str) -> Mapping[str, str] | None:
    """Return the specifiers that a group's `requires` has on a Python; None if not known."""
    if requires == "?":
        return None
    found = {}
    version = require_version(python)
    for text in requires.split():
        requirement, _, pythons = text.partition("@")
        clause = _CLAUSE.search(requirement)
        if clause is None:
            return None
        first, _, last = pythons.partition("-")
        if not first or require_version(first) <= version <= require_version(last):
            found[requirement[: clause.start()]] = requirement[clause.start() :]
    return found


def has_wheel(wheels: str, python: str) -> bool:
    """Return whether a cell `wheels` has a Python; releases without a Linux wheel count too."""
    first, dash, last = wheels.partition("-")
    if not dash:
        return True
    version = require_version(python)
    return require_version(first) <= version and (not last or version <= require_version(last))


@lru_cache(maxsize=1024)
def _admits_python(declared: str, python: str) -> bool:
    try:
        admits = parse_specifiers(declared)
    except InvalidSpecifier:
        return True
    return any(admits.contains(f"{python}.{patch}") for patch in (0, 99))
