"""Arithmetic over versions and specifiers: what a set of bounds lets through."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version


@lru_cache(maxsize=4096)
def parsed(text: str) -> Version | None:
    """Return the version that `text` writes (PEP 440), or None when it writes none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def ordered(text: str) -> Version:
    """Return the version that a fact table writes; raises InvalidVersion, as tables hold versions only."""
    return parsed(text) or Version(text)


def admitted(specifiers: SpecifierSet, versions: Iterable[str]) -> tuple[str, ...]:
    """Return those of `versions` that satisfy the specifiers, pre-releases included, in the order given."""
    return tuple(version for version in versions if specifiers.contains(version, prereleases=True))


def reaches(specifiers: SpecifierSet, floor: str) -> bool:
    """Tell whether any version at or above `floor`, released or not, satisfies the specifiers.

    What specifiers admit is a union of intervals whose ends are versions they name. It is enough to try those ends, what comes
    just after them, and the far end.
    """
    low = ordered(floor)
    points = {point for edge in (low, *named(specifiers)) for point in _around(edge)} | {Version("999999")}
    return any(point >= low and specifiers.contains(point, prereleases=True) for point in points)


def implies(specifiers: SpecifierSet, outer: SpecifierSet) -> bool:
    """Tell whether every version that satisfies `specifiers` satisfies `outer` too, and there is one. Tried at the ends of intervals, as in `reaches`."""
    edges = (ordered("0"), *named(specifiers), *named(outer))
    points = {point for edge in edges for point in _around(edge)} | {Version("999999")}
    let = [point for point in points if specifiers.contains(point, prereleases=True)]
    return bool(let) and all(outer.contains(point, prereleases=True) for point in let)


def named(specifiers: SpecifierSet) -> tuple[Version, ...]:
    """Return the versions that the specifiers name, `2.1` for `==2.1.*`."""
    versions = (parsed(clause.version.removesuffix(".*")) for clause in specifiers)
    return tuple(sorted(version for version in versions if version is not None))


def span(versions: Iterable[str]) -> str:
    """Return versions in few words for a message: "2.0.0", "2.0.0 and 2.0.1", or "2.0.0 to 2.15.0"."""
    listed = list(versions)
    if len(listed) <= 2:
        return " and ".join(listed)
    return f"{listed[0]} to {listed[-1]}"


def _around(edge: Version) -> tuple[Version, ...]:
    after = Version(".".join(str(part) for part in (*edge.release[:-1], edge.release[-1] + 1)))
    return edge, _just_above(edge), after, _just_above(after)


def _just_above(version: Version) -> Version:
    return Version(f"{version.epoch}!{'.'.join(str(part) for part in version.release)}.0.0.1")
