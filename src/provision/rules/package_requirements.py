"""The releases of packages that a spec admits, and what these releases require of each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from provision.diagnostics import Fix, Insert, RelatedLocation, Route
from provision.facts import Facts, TransformersReleases
from provision.facts.schema_packages import ReleaseRange
from provision.facts.versions import (
    has_version_in_range,
    is_satisfiable,
    named_versions,
    next_version,
    parse_specifiers,
    require_version,
    version_bounds,
)
from provision.rules.edits import unsafe_fix, yaml_scalar
from provision.rules.package_lines import (
    MAX_SPECIFIER_LENGTH,
    find_line,
    is_from_other_index,
    set_version_edit,
    without_local,
)
from provision.rules.rule import LintContext, related_at
from provision.spec import Package

ReleaseRow = ReleaseRange | TransformersReleases


class RequestedPackage(NamedTuple):
    """A package as it is requested or resolved.

    Attributes:
        name: the canonical name.
        specifiers: the specifiers without local tags.
        description: the name with the specifiers or the resolved version, for messages.
        route: the line of the package; `packages` if it has none.
        package: the line; None for a dependency.
    """

    name: str
    specifiers: str
    description: str
    route: Route
    package: Package | None

    @property
    def extras(self) -> Sequence[str]:
        """The extras of its line."""
        return self.package.extras if self.package else ()

    def may_be(self, first: str, below: str | None = None) -> bool:
        """Return whether a version from `first` to before `below` is admitted."""
        return has_version_in_range(parse_specifiers(self.specifiers), first, below)


class PossibleReleases(NamedTuple):
    """The rows of the admitted releases of a package, newest first.

    `is_complete` is False if releases older than the table are admitted too, and `has_unread` is
    True if releases between two rows are: those rows are among `rows`.
    """

    rows: tuple[ReleaseRow, ...]
    is_complete: bool
    has_unread: bool


def requested_package(context: LintContext, name: str) -> RequestedPackage | None:
    """Return a package by name; None if it is missing, or comes from conda or its own index."""
    known: dict[str, RequestedPackage | None] = context.cached("requested packages", dict)
    if name not in known:  # 90 calls for a spec of 5 packages
        known[name] = _find_requested(context, name)
    return known[name]


def _find_requested(context: LintContext, name: str) -> RequestedPackage | None:
    route, package = find_line(context, name) or (("packages",), None)
    if package and is_from_other_index(context, package):
        return None
    if context.resolved is not None:
        version = context.resolved.versions.get(name)
        if version is None:
            return None
        specifiers = f"=={without_local(version)}"
        return RequestedPackage(name, specifiers, f"{name} {version}", route, package)
    if package is None or package.marker or len(package.version) > MAX_SPECIFIER_LENGTH:
        return None
    specifiers = without_local(package.version)
    return RequestedPackage(name, specifiers, f"{name}{package.version}", route, package)


def requested_packages(context: LintContext) -> dict[str, RequestedPackage]:
    """Return the packages of the spec, or of the resolved set, that the tables apply to."""
    packages = ((name, requested_package(context, name)) for name in context.package_names)
    return {name: package for name, package in packages if package is not None}


def release_rows(facts: Facts, name: str) -> Sequence[ReleaseRow]:
    """Return the rows about the releases of a package, oldest first; () if it is unknown."""
    return facts.transformers if name == "transformers" else facts.runs.get(name, ())


@lru_cache(maxsize=4096)
def possible_releases(facts: Facts, name: str, specifiers: str) -> PossibleReleases | None:
    """Return the rows that specifiers admit; None if there are none, or newer releases."""
    table = release_rows(facts, name)
    if not table:
        return None
    admitted = _admitted_rows(specifiers, tuple((row.first, row.last) for row in table))
    if admitted is None:
        return None
    indexes, is_complete, has_unread = admitted
    return PossibleReleases(tuple(table[index] for index in indexes), is_complete, has_unread)


@lru_cache(maxsize=4096)
def is_certainly_within(specifiers: str, first: str, last: str) -> bool:
    """Return whether specifiers admit only versions from `first` to `last` ("" for no limit)."""
    admits = parse_specifiers(specifiers)
    low, high = version_bounds(admits)
    if (
        last
        and (high is None or high > require_version(last))
        and has_version_in_range(admits, next_version(last))
    ):
        return False
    return not first or (low is not None and low >= require_version(first))


def find_listed_provider(context: LintContext, name: str) -> str | None:
    """Return a listed package whose newest release is known to require `name`, or None."""
    for package in context.spec.packages:
        table = release_rows(context.facts, package.key)
        if table and name in table[-1].declared:
            return package.key
    return None


def is_known_dependency(context: LintContext, name: str) -> bool:
    """Return whether a listed package, or one of its extras, is known to require `name`."""
    listed = context.cached("listed bringers", lambda: _list_bringers(context))
    return not listed.isdisjoint(context.facts.bringers_of.get(name, ()))


def requested_trackers(context: LintContext) -> list[str]:
    """Return the trackers of TrainingArguments(report_to=...)."""
    report_to = context.spec.training.arguments.get("report_to")
    names = report_to if isinstance(report_to, list) else [report_to]
    return [name for name in names if isinstance(name, str)]


def starts_processes(context: LintContext) -> bool:
    """Return whether a listed package starts a process for each card, as Lightning's Trainer does.

    Source: Lightning's documentation, Accelerator: GPU training.
    """
    listed = {package.key for package in context.spec.packages}
    return not listed.isdisjoint(("lightning", "pytorch-lightning"))


def has_unknown_packages(context: LintContext) -> bool:
    """Return whether the dependencies of a listed package are unknown."""
    facts = context.facts
    return any(
        package.key not in facts.popular
        and package.key not in facts.seen
        and package.key not in facts.replaced  # such as sklearn, which requires nothing
        for package in context.spec.packages
    )


def is_excluded(context: LintContext, name: str, specifier: str) -> bool:
    """Return whether no release of `name` that `specifier` (as in ">=5") admits can be chosen."""
    package = requested_package(context, name)
    if package is not None:
        return not is_satisfiable(package.specifiers, specifier)
    return specifier.startswith(">=") and is_capped(context, name, specifier.replace(">=", "<"))


def is_capped(context: LintContext, name: str, ceiling: str) -> bool:
    """Return whether all admitted releases of a listed package require `name` below `ceiling`."""
    return any(
        _caps(context, package, name, ceiling)
        for package in context.spec.packages
        if package.key != name
    )


def declared_specifier(row: ReleaseRow, of: str, extras: Sequence[str] = ()) -> str | None:
    """Return the specifier that a release declares for a package, also by its extras, or None.

    transformers requires torch through extras alone; torch-too-old-for-transformers checks its
    real floor.
    """
    if of == "torch" and isinstance(row, TransformersReleases):
        return None
    keys = {of, *(f"{of}[{canonicalize_name(extra)}]" for extra in extras)}
    return next((specifier for key, specifier in row.declared.items() if key in keys), None)


def sort_specifiers(specifier: str) -> str:
    """Return specifiers with the floor first: ">=0.22.0,<=0.23.0" for "<=0.23.0,>=0.22.0"."""
    clauses = [clause.strip() for clause in specifier.split(",") if clause.strip()]
    return ",".join(sorted(clauses, key=lambda clause: (clause[0] not in ">=~", clause)))


def origin_route(context: LintContext, package: RequestedPackage, default: Route) -> Route:
    """Return the line of a package, or that of a listed package that requires it."""
    if package.package is not None:
        return package.route
    provider = find_listed_provider(context, package.name)
    line = find_line(context, provider) if provider else None
    return line[0] if line else default


def related_line(package: RequestedPackage) -> tuple[RelatedLocation, ...]:
    """Return the line of a package as a further location; () for a dependency."""
    return related_at(package.route, f"{package.name} requested here") if package.package else ()


def set_version_fix(context: LintContext, package: RequestedPackage, specifier: str) -> Fix:
    """Return the fix that requests other versions of a package, on its line or on a new one."""
    if package.package is None:
        return add_package_fix(package.name, specifier)
    return unsafe_fix(
        f"use {package.name}{specifier}",
        set_version_edit(context, package.route, package.package, specifier),
    )


def add_package_fix(name: str, specifier: str) -> Fix:
    """Return the fix that adds a line for a package."""
    return unsafe_fix(
        f"add {name}{specifier}", Insert(("packages",), None, yaml_scalar(f"{name}{specifier}"))
    )


def _list_bringers(context: LintContext) -> set[str]:
    """Return the listed packages, and each with each of its extras as in "package[extra]"."""
    listed = {package.name for package in context.spec.conda_packages}
    for package in context.spec.packages:
        listed.add(package.key)
        listed.update(f"{package.key}[{canonicalize_name(extra)}]" for extra in package.extras)
    return listed


def _admitted_rows(
    specifiers: str, table: tuple[tuple[str, str], ...]
) -> tuple[tuple[int, ...], bool, bool] | None:
    """Return the indexes of the admitted ranges, newest first, and two facts about them.

    The first is False if something older is admitted, the second is True if something between two
    ranges is. The result is None if something newer is admitted.
    """
    admits = parse_specifiers(specifiers)
    newest = table[-1][1]
    low, high = version_bounds(admits)
    if (high is None or high > require_version(newest)) and has_version_in_range(
        admits, next_version(newest)
    ):
        return None
    indexes = set()
    for index, (first, last) in enumerate(table):
        # The bounds exclude most ranges, and take less time than the specifiers.
        if low is not None and require_version(last) < low:
            continue
        if high is not None and require_version(first) > high:
            break
        if admits.contains(last, prereleases=True) or has_version_in_range(admits, first, last):
            indexes.add(index)
    has_unread = False
    for index, (older, newer) in enumerate(itertools.pairwise(table)):
        if _admits_unread_patch(admits, older[1], newer[0]):
            has_unread = True
            indexes |= {index, index + 1}
    is_complete = low is not None and low >= require_version(table[0][0])
    return tuple(sorted(indexes, reverse=True)), is_complete, has_unread


def _caps(context: LintContext, package: Package, name: str, ceiling: str) -> bool:
    if len(package.version) > MAX_SPECIFIER_LENGTH:
        return False
    releases = possible_releases(context.facts, package.key, without_local(package.version))
    if releases is None or not releases.rows:
        return False
    declared = (declared_specifier(row, name, package.extras) for row in releases.rows)
    forbidden = ceiling.replace("<=", ">").replace("<", ">=")
    return all(specifier and not is_satisfiable(specifier, forbidden) for specifier in declared)


def _admits_unread_patch(admits: SpecifierSet, older: str, newer: str) -> bool:
    """Return whether specifiers admit a release between two ranges of the table.

    Only the newest patch of each minor release was read: these are older patches of `newer`.
    """
    first = require_version(newer)
    if first.release[:2] == require_version(older).release[:2]:
        return False
    begin = Version(f"{first.major}.{first.minor}")
    return any(
        begin <= version < first and admits.contains(version, prereleases=True)
        for version in (begin, *named_versions(admits))
    )
