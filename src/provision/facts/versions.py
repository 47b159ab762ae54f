"""Arithmetic over versions and specifiers: what a set of bounds lets through."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version | None:
    """Return the version that `text` writes (PEP 440), or None when it writes none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def require_version(text: str) -> Version:
    """Return the version that a fact table writes; raises InvalidVersion, as tables hold versions
    only.
    """
    return parse_version(text) or Version(text)


@lru_cache(maxsize=4096)
def parse_specifiers(text: str) -> SpecifierSet:
    """Return version specifiers, parsed; raises InvalidSpecifier."""
    return SpecifierSet(text)


@lru_cache(maxsize=4096)
def is_satisfiable(one: str, other: str) -> bool:
    """Tell whether any version, released or not, satisfies both of two specifiers."""
    return has_version_in_range(parse_specifiers(f"{one},{other}".strip(",")), "0")


def version_bounds(specifiers: SpecifierSet) -> tuple[Version | None, Version | None]:
    """Return versions between which all lies that the specifiers admit, both included; None for an
    open end.
    """
    low: Version | None = None
    high: Version | None = None
    for clause in specifiers:
        version = parse_version(clause.version.removesuffix(".*"))
        if version is None:
            continue
        exact = clause.operator == "==" and not clause.version.endswith(".*")
        if clause.operator in (">=", ">", "==", "~="):
            low = version if low is None else max(low, version)
        if clause.operator in ("<", "<=") or exact:
            high = version if high is None else min(high, version)
        elif clause.operator in ("==", "~="):
            above = _bumped(version, len(version.release) - (2 if clause.operator == "~=" else 1))
            high = above if high is None else min(high, above)
    return low, high


def admitted_versions(specifiers: SpecifierSet, versions: Iterable[str]) -> tuple[str, ...]:
    """Return those of `versions` that satisfy the specifiers, pre-releases included, in the order
    given.
    """
    return _admitted(str(specifiers), tuple(versions))


def has_version_in_range(specifiers: SpecifierSet, floor: str, below: str | None = None) -> bool:
    """Tell whether any version at or above `floor`, and below `below` where that is given,
    satisfies the specifiers, released or not.

    What specifiers admit is a union of intervals whose ends are versions they name. It is enough
    to try those ends, what comes
    just after them, and the far end.
    """
    return _reaches(str(specifiers), floor, below)


@lru_cache(maxsize=4096)
def _reaches(text: str, floor: str, below: str | None) -> bool:
    # By text: to hash a set of specifiers takes longer than most of what is asked of it.
    specifiers, low, high = (
        parse_specifiers(text),
        require_version(floor),
        require_version(below) if below else None,
    )
    points = {point for edge in (low, *named_versions(specifiers)) for point in _around(edge)} | {
        Version("999999")
    }
    return any(
        point >= low
        and (high is None or point < high)
        and specifiers.contains(point, prereleases=True)
        for point in points
    )


@lru_cache(maxsize=1024)
def next_version(version: str) -> str:
    """Return a version just above: "2.13.0.0.1" for "2.13.0", "0.0.33.post3" for "0.0.33.post2"."""
    known = require_version(version)
    return (
        f"{known.base_version}.post{known.post + 1}"
        if known.post is not None
        else f"{known.public}.0.1"
    )


def implies(specifiers: SpecifierSet, outer: SpecifierSet) -> bool:
    """Tell whether every version that satisfies `specifiers` satisfies `outer` too, and there is
    one. Tried at the ends of intervals, as in `reaches`.
    """
    edges = (require_version("0"), *named_versions(specifiers), *named_versions(outer))
    points = {point for edge in edges for point in _around(edge)} | {Version("999999")}
    let = [point for point in points if specifiers.contains(point, prereleases=True)]
    return bool(let) and all(outer.contains(point, prereleases=True) for point in let)


def named_versions(specifiers: SpecifierSet) -> tuple[Version, ...]:
    """Return the versions that the specifiers name, `2.1` for `==2.1.*`."""
    versions = (parse_version(clause.version.removesuffix(".*")) for clause in specifiers)
    return tuple(sorted(version for version in versions if version is not None))


def lower_bound(specifiers: SpecifierSet) -> str | None:
    """Return the version that specifiers ask for at least ("580" of ">=580,<600" and of "==580.*"),
    None when they have no lower bound.
    """
    lower = [
        clause.version.removesuffix(".*")
        for clause in specifiers
        if clause.operator in (">=", ">", "==", "~=")
    ]
    return max(
        (version for version in lower if parse_version(version)), key=require_version, default=None
    )


def format_versions(versions: Iterable[str]) -> str:
    """Return versions in few words for a message: "2.0.0", "2.0.0 and 2.0.1", or "2.0.0 to 2.15.0"."""  # noqa: E501
    listed = list(versions)
    if len(listed) <= 2:
        return " and ".join(listed)
    return f"{listed[0]} to {listed[-1]}"


@lru_cache(maxsize=1024)
def _admitted(text: str, versions: tuple[str, ...]) -> tuple[str, ...]:
    specifiers = parse_specifiers(text)
    return tuple(version for version in versions if specifiers.contains(version, prereleases=True))


def _bumped(version: Version, place: int) -> Version:
    return Version(
        ".".join(
            str(part) for part in (*version.release[:place], version.release[max(place, 0)] + 1)
        )
    )


def _around(edge: Version) -> tuple[Version, ...]:
    after = Version(".".join(str(part) for part in (*edge.release[:-1], edge.release[-1] + 1)))
    return edge, _just_above(edge), after, _just_above(after)


def _just_above(version: Version) -> Version:
    return Version(f"{version.epoch}!{'.'.join(str(part) for part in version.release)}.0.0.1")
