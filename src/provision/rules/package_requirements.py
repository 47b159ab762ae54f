"""What packages need of each other: which of their releases are still possible, and what all of
those ask for.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import Version

from provision.diagnostics import Applicability, Fix, Insert, Route
from provision.facts import Facts, TransformersReleases
from provision.facts.schema_packages import ReleaseRange
from provision.facts.versions import (
    has_version_in_range,
    is_satisfiable,
    named_versions,
    next_version,
    parse_specifiers,
    parse_version,
    require_version,
    version_bounds,
)
from provision.rules.package_lines import (
    MAX_SPECIFIER_LENGTH,
    find_line,
    is_from_other_index,
    package_lines,
    set_version_edit,
    without_local,
    yaml_scalar,
)
from provision.rules.rule import LintContext
from provision.spec import Package

ReleaseRow = ReleaseRange | TransformersReleases


class RequestedPackage(NamedTuple):
    """A package as it is asked for, or as it was resolved: its specifiers, both in words, and the
    route that let it in.
    """

    name: str
    specifiers: str
    description: str
    route: Route
    package: Package | None


class PossibleReleases(NamedTuple):
    """The rows that hold for the releases of a package that are still possible, newest first; not
    `sure` when older ones than the table's are, too.
    """

    rows: tuple[ReleaseRow, ...]
    is_complete: bool


def requested_package(context: LintContext, name: str) -> RequestedPackage | None:
    """Return what is asked for under a name; None when it is not there, or comes from where the
    tables do not hold (conda, an index of its own).
    """
    return _asked(context, name, find_line(context, name))


def requested_packages(context: LintContext) -> dict[str, RequestedPackage]:
    """Return every package of the spec, or of the resolved set, that can be reasoned about, by
    name.
    """
    first: dict[str, tuple[Route, Package]] = {}
    for route, package in package_lines(context):
        first.setdefault(package.key, (route, package))
    names = first if context.resolved is None else context.resolved.versions
    return {
        name: one for name in names if (one := _asked(context, name, first.get(name))) is not None
    }


def release_rows(facts: Facts, name: str) -> Sequence[ReleaseRow]:
    """Return what is known of the releases of a package, oldest first; () for an unknown one."""
    return facts.transformers if name == "transformers" else facts.runs.get(name, ())


def possible_releases(facts: Facts, name: str, specifiers: str) -> PossibleReleases | None:
    """Return the rows for what specifiers admit; None when the table is silent: no row, or newer
    releases than it knows are admitted.
    """
    table = release_rows(facts, name)
    if not table:
        return None
    held = _held(specifiers, tuple((row.first, row.last) for row in table))
    return (
        None
        if held is None
        else PossibleReleases(tuple(table[place] for place in held[0]), held[1])
    )


def is_certainly_within(specifiers: str, first: str, last: str) -> bool:
    """Tell whether all that specifiers admit lies from `first` to `last` ("" for no end)."""
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
    """Return a listed package that brings `name` with it as far as the tables know, or None."""
    for package in context.spec.packages:
        table = release_rows(context.facts, package.key)
        if table and name in table[-1].declared:
            return package.key
    return None


def is_known_dependency(context: LintContext, name: str) -> bool:
    """Tell whether a listed package, or an extra of one, is known to bring `name`."""
    listed = {
        key
        for package in context.spec.packages
        for key in (
            package.key,
            *(f"{package.key}[{canonicalize_name(one)}]" for one in package.extras),
        )
    }
    listed |= {package.name for package in context.spec.conda_packages}
    return any(
        row.package in listed for row in context.facts.bringers.values() if name in row.brings
    )


def starts_processes(context: LintContext) -> bool:
    """Tell whether a listed package starts a process for each card itself: Lightning's Trainer does
    (its documentation, Accelerator: GPU training).
    """
    return any(
        package.key in ("lightning", "pytorch-lightning") for package in context.spec.packages
    )


def has_unknown_packages(context: LintContext) -> bool:
    """Tell whether a listed package is outside the tables, so that what it brings is unknown."""
    facts = context.facts
    return any(
        package.key not in facts.popular and package.key not in facts.seen
        for package in context.spec.packages
    )


def is_excluded(context: LintContext, name: str, specifier: str) -> bool:
    """Tell whether `name` is known to be none of the releases that `specifier` (">=5") admits: by
    its line, its resolved version or what a package declares.
    """
    one = requested_package(context, name)
    if one is not None:
        return not is_satisfiable(one.specifiers, specifier)
    return specifier.startswith(">=") and is_capped(context, name, specifier.replace(">=", "<"))


def is_capped(context: LintContext, name: str, ceiling: str) -> bool:
    """Tell whether a listed package keeps `name` at what `ceiling` ("<2") admits by what all its
    possible releases declare.
    """
    return any(
        _caps(context, package, name, ceiling)
        for package in context.spec.packages
        if package.key != name
    )


def declared_specifier(row: ReleaseRow, of: str, extras: Sequence[str] = ()) -> str | None:
    """Return the specifier that a row declares about a package, for these extras too; None when it
    declares nothing about it.

    transformers asks for torch through extras alone; its own floor is looked at by
    torch-too-old-for-transformers.
    """
    if of == "torch" and isinstance(row, TransformersReleases):
        return None
    for key, specifier in row.declared.items():
        name, _, extra = key.partition("[")
        if name == of and (
            not extra
            or canonicalize_name(extra.rstrip("]")) in {canonicalize_name(one) for one in extras}
        ):
            return specifier
    return None


def sort_specifiers(specifier: str) -> str:
    """Return specifiers with the floor first: ">=0.22.0,<=0.23.0" for "<=0.23.0,>=0.22.0"."""
    return ",".join(
        sorted(
            (clause.strip() for clause in specifier.split(",") if clause.strip()),
            key=lambda clause: (clause[0] not in ">=~", clause),
        )
    )


def origin_route(context: LintContext, one: RequestedPackage, otherwise: Route) -> Route:
    """Return the line that let a package in: its own, that of a listed package that brings it, or
    `otherwise`.
    """
    if one.package is not None:
        return one.route
    bringer = find_listed_provider(context, one.name)
    found = find_line(context, bringer) if bringer else None
    return found[0] if found else otherwise


def set_version_fix(context: LintContext, one: RequestedPackage, specifier: str) -> Fix:
    """Return the fix that asks for other versions of a package, on its line or on a new one."""
    if one.package is None:
        return add_package_fix(one.name, specifier)
    return Fix(
        f"ask for {one.name}{specifier}",
        (set_version_edit(context, one.route, one.package, specifier),),
        Applicability.UNSAFE,
    )


def add_package_fix(name: str, specifier: str) -> Fix:
    """Return the fix that lists a package that is not listed yet."""
    return Fix(
        f"add {name}{specifier}",
        (Insert(("packages",), None, yaml_scalar(f"{name}{specifier}")),),
        Applicability.UNSAFE,
    )


@lru_cache(maxsize=1024)
def _held(
    specifiers: str, table: tuple[tuple[str, str], ...]
) -> tuple[tuple[int, ...], bool] | None:
    """Return the places of the runs that specifiers admit, newest first, and whether they admit
    nothing older; None when they admit something newer.
    """
    admits, last = parse_specifiers(specifiers), table[-1][1]
    low, high = version_bounds(admits)
    if (high is None or high > require_version(last)) and has_version_in_range(
        admits, next_version(last)
    ):
        return None
    held = {
        place
        for place, (first, last) in enumerate(table)
        if _overlap(first, last, low, high) and _admitted(specifiers, first, last)
    }
    for place, (older, newer) in enumerate(itertools.pairwise(table)):
        if _in_gap(specifiers, older[1], newer[0], low, high):
            held |= {place, place + 1}
    return tuple(sorted(held, reverse=True)), low is not None and low >= require_version(
        table[0][0]
    )


def _asked(
    context: LintContext, name: str, found: tuple[Route, Package] | None
) -> RequestedPackage | None:
    if found and is_from_other_index(context, found[1]):
        return None
    if context.resolved is not None:
        version = context.resolved.versions.get(name)
        if version is None:
            return None
        return RequestedPackage(
            name,
            f"=={without_local(version)}",
            f"{name} {version}",
            found[0] if found else ("packages",),
            found[1] if found else None,
        )
    if found is None or found[1].marker or len(found[1].version) > MAX_SPECIFIER_LENGTH:
        return None
    return RequestedPackage(
        name, without_local(found[1].version), f"{name}{found[1].version}", *found
    )


def _caps(context: LintContext, package: Package, name: str, ceiling: str) -> bool:
    held = (
        possible_releases(context.facts, package.key, without_local(package.version))
        if len(package.version) <= MAX_SPECIFIER_LENGTH
        else None
    )
    if held is None or not held.rows:
        return False
    forbidden = _complement(ceiling)
    said = [declared_specifier(row, name, package.extras) for row in held.rows]
    return all(one is not None and not is_satisfiable(one, forbidden) for one in said)


def _complement(ceiling: str) -> str:
    return ceiling.replace("<=", ">") if ceiling.startswith("<=") else ceiling.replace("<", ">=")


def _overlap(first: str, last: str, low: Version | None, high: Version | None) -> bool:
    return (low is None or require_version(last) >= low) and (
        high is None or require_version(first) <= high
    )


def _admitted(specifiers: str, first: str, last: str) -> bool:
    """Tell whether specifiers admit a version from `first` to `last`."""
    admits = parse_specifiers(specifiers)
    if any(admits.contains(end, prereleases=True) for end in (first, last)):
        return True
    inside = (
        version
        for version in named_versions(admits)
        if require_version(first) < version < require_version(last)
    )
    return any(
        admits.contains(point, prereleases=True)
        for version in inside
        for point in (version, Version(next_version(version.public)))
        if parse_version(str(point))
    )


def _in_gap(
    specifiers: str, older: str, newer: str, low: Version | None, high: Version | None
) -> bool:
    """Tell whether specifiers admit a release that was not read: of each minor only the newest
    patch was, so these are older patches of `newer`'s.
    """
    first, before = require_version(newer), require_version(older)
    if (
        first.release[:2] == before.release[:2]
        or (low is not None and low >= first)
        or (high is not None and high <= before)
    ):
        return False
    begin = require_version(".".join(str(part) for part in first.release[:2]))
    if begin >= first or (high is not None and high < begin):
        return False
    admits = parse_specifiers(specifiers)
    points = [begin, *(version for version in named_versions(admits) if begin <= version < first)]
    return any(admits.contains(point, prereleases=True) for point in points)
