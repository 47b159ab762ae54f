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


def reaches(specifiers: SpecifierSet, floor: str, below: str | None = None) -> bool:
    """Tell whether any version at or above `floor`, and below `below` where that is given, satisfies the specifiers, released or not.

    What specifiers admit is a union of intervals whose ends are versions they name. It is enough to try those ends, what comes
    just after them, and the far end.
    """
    low, high = ordered(floor), ordered(below) if below else None
    points = {point for edge in (low, *named(specifiers)) for point in _around(edge)} | {Version("999999")}
    return any(point >= low and (high is None or point < high) and specifiers.contains(point, prereleases=True) for point in points)


def named(specifiers: SpecifierSet) -> tuple[Version, ...]:
    """Return the versions that the specifiers name, `2.1` for `==2.1.*`."""
    versions = (parsed(clause.version.removesuffix(".*")) for clause in specifiers)
    return tuple(sorted(version for version in versions if version is not None))


def least(specifiers: SpecifierSet) -> str | None:
    """Return the version that specifiers ask for at least ("580" of ">=580,<600" and of "==580.*"), None when they have no lower bound."""
    lower = [clause.version.removesuffix(".*") for clause in specifiers if clause.operator in (">=", ">", "==", "~=")]
    return max((version for version in lower if parsed(version)), key=ordered, default=None)


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
