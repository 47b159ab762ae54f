"""Arithmetic of versions and specifiers: which versions a set of bounds admits."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

_ABOVE_ALL = "999999"


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version | None:
    """Return the version of a text (PEP 440), or None if it is not a version."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def require_version(text: str) -> Version:
    """Return the version of a text from a fact table; raises InvalidVersion."""
    return parse_version(text) or Version(text)


@lru_cache(maxsize=4096)
def parse_specifiers(text: str) -> SpecifierSet:
    """Return parsed version specifiers; raises InvalidSpecifier."""
    return SpecifierSet(text)


@lru_cache(maxsize=4096)
def is_satisfiable(left: str, right: str) -> bool:
    """Return whether any version, released or not, satisfies both of two specifiers."""
    return has_version_in_range(parse_specifiers(f"{left},{right}".strip(",")), "0")


def version_bounds(specifiers: SpecifierSet) -> tuple[Version | None, Version | None]:
    """Return the lowest and the highest version that specifiers admit, None for an open end."""
    low: Version | None = None
    high: Version | None = None
    for clause in specifiers:
        version = parse_version(clause.version.removesuffix(".*"))
        if version is None:
            continue
        if clause.operator in (">=", ">", "==", "~="):
            low = max(low or version, version)
        upper = _upper_bound(clause.operator, version, is_prefix=clause.version.endswith(".*"))
        if upper is not None:
            high = min(high or upper, upper)
    return low, high


def _upper_bound(operator: str, version: Version, *, is_prefix: bool) -> Version | None:
    """Return the version that a clause admits at most, itself included; None if unlimited."""
    if operator in ("<", "<=") or (operator == "==" and not is_prefix):
        return version
    if operator == "==":
        return _bumped(version, len(version.release) - 1)
    return _bumped(version, len(version.release) - 2) if operator == "~=" else None


def admitted_versions(specifiers: SpecifierSet, versions: Iterable[str]) -> tuple[str, ...]:
    """Return the versions that satisfy specifiers, pre-releases included, in the given order."""
    return _admitted(str(specifiers), tuple(versions))


def has_version_in_range(specifiers: SpecifierSet, floor: str, below: str | None = None) -> bool:
    """Return whether any version from `floor` to before `below` satisfies specifiers.

    The version does not have to exist. Specifiers admit a union of intervals between versions that
    they name, so it is enough to test these versions, those just after them, and a very high one.
    """
    return _has_version_in_range(str(specifiers), floor, below)


# The cache is keyed by text: hashing a set of specifiers takes longer than most calls.
@lru_cache(maxsize=4096)
def _has_version_in_range(text: str, floor: str, below: str | None) -> bool:
    specifiers = parse_specifiers(text)
    low, high = require_version(floor), require_version(below or _ABOVE_ALL)
    return any(
        low <= point and (not below or point < high)
        for point in _admitted_points(specifiers, (low, *named_versions(specifiers)))
    )


@lru_cache(maxsize=1024)
def next_version(version: str) -> str:
    """Return a version just above: "2.13.0.0.1" for "2.13.0", "0.0.33.post3" for "0.0.33.post2"."""
    parsed = require_version(version)
    if parsed.post is None:
        return f"{parsed.public}.0.1"
    return f"{parsed.base_version}.post{parsed.post + 1}"


def is_pin(specifiers: str) -> bool:
    """Return whether specifiers admit one release alone: "==2.13.0", not "==2.13.*"."""
    return specifiers.startswith("==") and parse_version(specifiers[2:]) is not None


def implies(specifiers: SpecifierSet, outer: SpecifierSet) -> bool:
    """Return whether every version that satisfies `specifiers` satisfies `outer`, and one exists.

    It tests the same versions as `has_version_in_range`.
    """
    edges = (Version("0"), *named_versions(specifiers), *named_versions(outer))
    points = _admitted_points(specifiers, edges)
    return bool(points) and all(outer.contains(point, prereleases=True) for point in points)


def named_versions(specifiers: SpecifierSet) -> tuple[Version, ...]:
    """Return the versions that specifiers name, `2.1` for `==2.1.*`."""
    versions = (parse_version(clause.version.removesuffix(".*")) for clause in specifiers)
    return tuple(sorted(version for version in versions if version is not None))


def lower_bound(specifiers: SpecifierSet) -> str | None:
    """Return the highest lower bound of specifiers ("580" for ">=580,<600" and "==580.*")."""
    lower = (
        clause.version.removesuffix(".*")
        for clause in specifiers
        if clause.operator in (">=", ">", "==", "~=")
    )
    return max(filter(parse_version, lower), key=require_version, default=None)


def format_versions(versions: Iterable[str]) -> str:
    """Return versions for a message: "2.0.0", "2.0.0 and 2.0.1", or "2.0.0 to 2.15.0"."""
    listed = list(versions)
    if len(listed) <= 2:
        return " and ".join(listed)
    return f"{listed[0]} to {listed[-1]}"


@lru_cache(maxsize=1024)
def _admitted(text: str, versions: tuple[str, ...]) -> tuple[str, ...]:
    specifiers = parse_specifiers(text)
    return tuple(version for version in versions if specifiers.contains(version, prereleases=True))


def _admitted_points(specifiers: SpecifierSet, edges: Iterable[Version]) -> list[Version]:
    """Return the edges of intervals and the versions just after them that specifiers admit."""
    points = {Version(_ABOVE_ALL)}
    for edge in edges:
        after = _bumped(edge, len(edge.release) - 1)
        points |= {edge, _just_above(edge), after, _just_above(after)}
    return [point for point in points if specifiers.contains(point, prereleases=True)]


def _bumped(version: Version, index: int) -> Version:
    """Return the release with one part incremented and the parts after it dropped."""
    parts = (*version.release[:index], version.release[max(index, 0)] + 1)
    return Version(".".join(map(str, parts)))


def _just_above(version: Version) -> Version:
    return Version(f"{version.epoch}!{'.'.join(map(str, version.release))}.0.0.1")
