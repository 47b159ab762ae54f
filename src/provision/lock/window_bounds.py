"""Bounds that keep releases apart which do not work together, though neither declares it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from provision.diagnostics import Severity
from provision.facts import Facts
from provision.facts.release_windows import broken_windows_among, unmet_requirements
from provision.facts.schema_packages import UndeclaredRequirement
from provision.facts.versions import is_satisfiable
from provision.spec import Spec


@dataclass(frozen=True, slots=True, order=True)
class WindowBound:
    """A bound that a lock adds to a package, and the id of the window that needs it.

    For a requirement that releases do not declare, the id is the packages and its first release.
    """

    package: str
    specifier: str
    window: str

    @property
    def requirement(self) -> str:
        """The bound as a requirement."""
        return f"{self.package}{self.specifier}"


def propose_bounds(spec: Spec, facts: Facts, versions: Mapping[str, str]) -> Iterator[WindowBound]:
    """Yield the bounds that would keep releases apart that do not work together, in a fixed order.

    A bound on the package that lacks a name comes before one on the package that uses it. A line of
    the spec that does not admit the bound is pinned: it gets none. Incompatibilities that only
    break a part of a package are left to the rules.
    """
    for window in broken_windows_among(facts, versions):
        if window.admitted_severity() is Severity.ERROR:
            bounds = [
                WindowBound(window.of, window.specifier, window.id),
                WindowBound(window.package, f"<{window.first}", window.id),
            ]
            yield from (bound for bound in bounds if _admits(spec, bound))
    for need in unmet_requirements(facts, versions):
        if need.evidence.cap_severity(Severity(need.severity)) is not Severity.ERROR:
            continue
        if not (need.of == "protobuf" and spec.loads_old_protobuf):
            yield from (bound for bound in _bounds_of(need) if _admits(spec, bound))


def _bounds_of(need: UndeclaredRequirement) -> Iterator[WindowBound]:
    identity = f"{need.package}-{need.first or 'any'}-{need.of}"
    yield WindowBound(need.of, need.specifier, identity)
    if need.last:
        yield WindowBound(need.package, f">{need.last}", identity)
    if need.first:
        yield WindowBound(need.package, f"<{need.first}", identity)


def _admits(spec: Spec, bound: WindowBound) -> bool:
    """Return whether every line of a package admits a bound."""
    return all(
        is_satisfiable(package.version, bound.specifier)
        for package in spec.packages
        if package.key == bound.package
    )
