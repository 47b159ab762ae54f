"""Search for requirements that no set of releases fulfills, through packages that are not listed.

Each package has the set of releases that its line, the Python and the requirements of the others
leave. A requirement counts only if every release that is left has one, so that an empty set is
certain. Releases that are newer than the table may require anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from provision.facts.package_releases import (
    PackageReleases,
    load_releases,
)
from provision.rules.package_requirements import (
    RequestedPackage,
    requested_packages,
    sort_specifiers,
)
from provision.rules.rule import LintContext

_OF_BUILDS = {"torch": "triton"}
"""Requirements that only the builds on the public index have."""
MOST_CONFLICTS = 8
"""Conflicts that are reported for a spec."""


class Demand(NamedTuple):
    """A requirement of a package (`by`) on another one (`of`)."""

    by: str
    of: str
    specifiers: str


class ReleaseConflict(NamedTuple):
    """A package of which no release is left.

    Attributes:
        name: the package.
        demands: the requirements on it.
        lines: the listed packages without which there is no conflict, in the spec's order.
        via: the requirements that bring packages which are not listed, by their name.
        admitted: the releases that are left if the Python does not count; 0 if there are none.
    """

    name: str
    demands: tuple[Demand, ...]
    lines: tuple[RequestedPackage, ...]
    via: Mapping[str, Demand]
    admitted: int

    @property
    def names(self) -> frozenset[str]:
        """The names of the lines."""
        return frozenset(line.name for line in self.lines)

    @property
    def line(self) -> RequestedPackage:
        """The line that a finding points at: that of the package, or the last one."""
        return next((line for line in self.lines if line.name == self.name), self.lines[-1])


def release_conflicts(context: LintContext) -> tuple[ReleaseConflict, ...]:
    """Return the conflicts between the lines of a spec, each with as few lines as possible."""
    return context.cached("release conflicts", lambda: tuple(_find_conflicts(context)))


def may_be_brought(context: LintContext, name: str, floor: str) -> bool:
    """Return whether the lines certainly require a package and leave a release from `floor` on."""
    search = _search_listed(context)
    return search is not None and search.leaves(name, f">={floor}")


def describe_demand(conflict: ReleaseConflict, demand: Demand, context: LintContext) -> str:
    """Return a requirement with the packages that bring it, for a message."""
    listed = requested_packages(context)
    chain: list[str] = []
    name = demand.by
    while name not in listed and name in conflict.via and len(chain) < 4:
        chain.append(name)
        name = conflict.via[name].by
    subject = listed[name].description if name in listed else name
    through = f", through {' and '.join(reversed(chain))}," if chain else ""
    return f"{subject}{through} requires {demand.of}{sort_specifiers(demand.specifiers)}"


def _find_conflicts(context: LintContext) -> Iterator[ReleaseConflict]:
    if context.resolved is not None or not _installs_on_linux(context):
        return
    if _search_listed(context) is not None:  # the usual case
        return
    table = load_releases()
    listed, opaque = _list_lines(context, table)
    if not listed:
        return
    for _ in range(MOST_CONFLICTS):
        search = _Search(context, table, listed, opaque)
        empty = search.find_empty()
        if not empty:
            return
        lines = dict(listed)
        for name in sorted(listed, key=lambda name: name == empty):
            fewer = {other: line for other, line in lines.items() if other != name}
            if _Search(context, table, fewer, opaque).find_empty():
                lines = fewer
        search = _Search(context, table, lines, opaque)
        name = search.find_empty()
        yield search.conflict(name, tuple(lines.values()))
        # The rest is searched without what requires the package, or without the package.
        solved = (lines.keys() - {name}) or {name}
        listed = {other: line for other, line in listed.items() if other not in solved}
        opaque |= solved


def _list_lines(
    context: LintContext, table: Mapping[str, PackageReleases]
) -> tuple[dict[str, RequestedPackage], set[str]]:
    """Return the lines whose releases are in the table, and the packages that cannot be judged."""
    requested = requested_packages(context)
    listed = {
        name: package for name, package in requested.items() if package.specifiers and name in table
    }
    opaque = {name for name in context.package_names if name not in requested}
    opaque |= {package.name for package in context.spec.conda_packages}
    return listed, opaque


def _search_listed(context: LintContext) -> _Search | None:
    """Return what the lines of a spec leave of all packages; None if they contradict each other."""
    return context.cached("release search", lambda: _make_search(context))


def _make_search(context: LintContext) -> _Search | None:
    if context.resolved is not None or not _installs_on_linux(context):
        return None
    table = load_releases()
    search = _Search(context, table, *_list_lines(context, table))
    return None if search.find_empty() else search


def _installs_on_linux(context: LintContext) -> bool:
    return any("linux-x86_64" in target.platforms for target in context.targets)


class _Search:
    """The sets of releases that are left for each package, and the requirements that limit them."""

    def __init__(
        self,
        context: LintContext,
        table: Mapping[str, PackageReleases],
        lines: Mapping[str, RequestedPackage],
        opaque: Collection[str],
    ) -> None:
        self._table, self._lines, self._opaque = table, lines, opaque
        self._python = context.spec.python
        self._may_build = {
            name
            for package in context.spec.packages
            for name in (*package.built_names, *((package.key,) if package.is_built else ()))
        }
        self._builds_all = any(package.build is True for package in context.spec.packages)
        self._left: dict[str, int] = {}
        self._demands: dict[str, list[Demand]] = {}

    def find_empty(self) -> str:
        """Return a package of which no release is left that can be installed, or ""."""
        for name, line in self._lines.items():
            releases = self._table.get(name)
            admitted = releases.admitted(line.specifiers) if releases else None
            if releases is None or not admitted:
                continue
            self._left[name] = admitted & self._on_python(releases)
            if not self._left[name]:
                return name
        waiting = list(self._left)
        while waiting:
            name = waiting.pop(0)
            for demand, admitted in self._certain_demands(name):
                before = self._left.get(demand.of)
                if before is None:
                    before = self._on_python(self._table[demand.of])
                after = before & admitted
                if after == before and demand.of in self._left:
                    continue
                self._left[demand.of] = after
                self._demands.setdefault(demand.of, []).append(demand)
                if not after:
                    return demand.of
                waiting.append(demand.of)
        return next(filter(self._lacks_wheel, self._left), "")

    def leaves(self, name: str, specifiers: str) -> bool:
        """Return whether a package is required, and has a release that specifiers admit."""
        left = self._left.get(name, 0)
        return bool(left) and bool(left & (self._table[name].admitted(specifiers) or 0))

    def conflict(self, name: str, lines: tuple[RequestedPackage, ...]) -> ReleaseConflict:
        """Return the conflict about the package of which no release is left."""
        demands = tuple(self._demands.get(name, ()))
        via = {of: found[0] for of, found in self._demands.items() if of not in self._lines}
        return ReleaseConflict(name, demands, lines, via, self._admitted(name))

    def _certain_demands(self, name: str) -> Iterator[tuple[Demand, int]]:
        """Yield what every release that is left requires, with the releases that this admits."""
        releases, left = self._table[name], self._left[name]
        if left & releases.newer or not left:
            return
        certain = releases.certain_requirements(left, self._python, self._table)
        for of, specifiers, admitted in certain:
            if of != name and of not in self._opaque and _OF_BUILDS.get(name) != of:
                yield Demand(name, of, specifiers), admitted

    def _lacks_wheel(self, name: str) -> bool:
        """Return whether only releases are left that have to be built, and not on every Python.

        PKG014 reports packages that are published only as source.
        """
        releases, left = self._table[name], self._left[name]
        if self._can_build(name) or left & ~releases.without_wheel:
            return False
        return bool(self._admitted(name) & ~releases.without_wheel)

    def _admitted(self, name: str) -> int:
        """Return the releases that the line of a package and the demands on it leave."""
        releases = self._table[name]
        admitted = (releases.newer << 1) - 1
        if name in self._lines:
            admitted &= releases.admitted(self._lines[name].specifiers) or admitted
        for demand in self._demands.get(name, ()):
            admitted &= releases.admitted(demand.specifiers) or admitted
        return admitted

    def _can_build(self, name: str) -> bool:
        return name in self._may_build or (self._builds_all and name not in self._lines)

    def _on_python(self, releases: PackageReleases) -> int:
        return releases.on_python(self._python, may_build=self._can_build(releases.name))
