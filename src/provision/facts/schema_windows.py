"""Row types of the fact table about names that releases use of each other."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from provision.diagnostics import Severity
from provision.facts.evidence import Evidence
from provision.facts.versions import is_satisfiable, require_version


class ReleaseWindow(NamedTuple):
    """A name that the releases `first` to `last` of a package use of another package.

    Only the releases `specifier` of `of` have it.

    Attributes:
        id: the key of the row; locks record it.
        package: the package that uses the name.
        first: its first release that does.
        last: its last release that does; "" if the newest release that was read does.
        of: the package that the name belongs to.
        specifier: the releases of `of` that have the name, as ">=4.43.4" or "<5.0.0".
        name: the dotted name, with the keyword argument of a call in parentheses ("f(x=)"), or the
            parameters of a method that `package` replaces ("C.log(logs)").
        severity: "error" if the import of the package fails without it, "warning" if a part does.
        uses: the file and line of the use.
        has: the file and line of the definition, in the nearest release that has the name.
        evidence: the two wheels, and the threads that report it.
        declared: what the newest of the releases declares for `of`, "" for nothing.
    """

    id: str
    package: str
    first: str
    last: str
    of: str
    specifier: str
    name: str
    severity: str
    uses: str
    has: str
    evidence: Evidence
    declared: str = ""

    @classmethod
    def from_columns(
        cls, *, uses: str, has: str, evidence: Evidence, threads: str = "", **columns: Any
    ) -> Self:
        """Return a row of the table; the threads become a part of its source."""
        package, first, of = columns["package"], columns["first"], columns["of"]
        source = f"{uses} in {package} {first}; {has} of {of}; {threads or 'no thread found'}"
        return cls(uses=uses, has=has, evidence=evidence._replace(source=source), **columns)

    @property
    def is_certain(self) -> bool:
        """Whether an import fails, or a call that is made whenever its method or function runs.

        Other parts may not be used by a project.
        """
        return self.severity == "error" or self.name.endswith(")")

    @property
    def is_override(self) -> bool:
        """Return whether a method replaces one that is called with other arguments."""
        return self.name.endswith(")") and not self.name.endswith("=)")

    @property
    def is_floor(self) -> bool:
        """Whether older releases of the other package lack the name."""
        return self.specifier.startswith(">=")

    @property
    def effect(self) -> str:
        """What fails, in words."""
        bound = self.specifier.lstrip("<>=")
        since = f"from {bound} on" if self.is_floor else f"before {bound}"
        what = (
            f"importing {self.package}" if self.severity == "error" else f"a part of {self.package}"
        )
        if self.is_override:
            return (
                f"{what} fails: it replaces a method as {self.name}, and {self.of} passes these "
                f"arguments only {since}"
            )
        verb = "calls" if self.name.endswith(")") else "uses"
        return f"{what} fails: it {verb} {self.name}, which {self.of} has {since}"

    def includes(self, release: str) -> bool:
        """Return whether a release of the package uses the name."""
        version = require_version(release)
        return require_version(self.first) <= version and (
            not self.last or version <= require_version(self.last)
        )

    def excludes(self, specifiers: str) -> bool:
        """Return whether no release of the other package that specifiers admit has the name."""
        return not is_satisfiable(self.specifier, specifiers)

    def admitted_severity(self) -> Severity:
        """Return the severity that the evidence allows."""
        return self.evidence.cap_severity(Severity(self.severity))


class ReadReleases(NamedTuple):
    """The releases of a package that were read for windows, oldest first; () for none.

    `uses` is whether its own uses of other packages were read too, not only what it defines.
    """

    package: str
    uses: bool
    releases: tuple[str, ...]
    evidence: Evidence

    @classmethod
    def from_columns(cls, *, releases: str, **columns: Any) -> Self:
        """Return a row of the table, which writes releases between spaces."""
        return cls(releases=tuple(releases.split()), **columns)
