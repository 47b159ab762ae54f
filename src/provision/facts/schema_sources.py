"""Row types of the fact tables about packages that are published as source."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from provision.facts.evidence import Evidence

Strings = tuple[str, ...]


class SourceOnlyPackage(NamedTuple):
    """A package without wheels up to release `last`, and its build requirements.

    `needs` lists packages and nvcc.
    """

    package: str
    last: str
    needs: Strings
    evidence: Evidence
    note: str = ""

    @property
    def packages(self) -> Strings:
        """The Python packages that its build requires."""
        return tuple(name for name in self.needs if name != "nvcc")


class WheelReleases(NamedTuple):
    """Releases of a package that have only a source distribution, and those with a wheel.

    `compiles` is whether the newest of `sources` contains code to compile. Both lists end with the
    newest release at the time of reading.
    """

    package: str
    sources: Strings
    wheels: Strings
    compiles: bool
    evidence: Evidence

    @classmethod
    def from_columns(cls, *, sources: str, wheels: str, **columns: Any) -> Self:
        """Return a row of the table, which writes releases between spaces."""
        return cls(sources=tuple(sources.split()), wheels=tuple(wheels.split()), **columns)


class BroughtSource(NamedTuple):
    """Releases of `package` that require a package of `WheelReleases` with these specifiers.

    The releases `others` do not require it.
    """

    package: str
    brings: str
    requires: str
    releases: Strings
    others: Strings
    evidence: Evidence

    @classmethod
    def from_columns(cls, *, releases: str, others: str, **columns: Any) -> Self:
        """Return a row of the table, which writes releases between spaces."""
        return cls(releases=tuple(releases.split()), others=tuple(others.split()), **columns)
