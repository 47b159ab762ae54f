"""Releases of two packages that do not work together though no requirement keeps them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from provision.diagnostics import Severity
from provision.facts.fact_tables import FactTables
from provision.facts.schema_packages import SAME_RELEASE, UndeclaredRequirement
from provision.facts.schema_windows import ReleaseWindow
from provision.facts.versions import (
    admitted_versions,
    has_version_in_range,
    is_satisfiable,
    parse_specifiers,
    parse_version,
    require_version,
)


class BrokenWindow(NamedTuple):
    """A window that every admitted release of a package breaks, or the newest ones only.

    Attributes:
        window: the window of the newest admitted release.
        severity: the lowest severity of the admitted releases that break a window.
        release: the newest admitted release.
        below: the oldest release of the unbroken run of releases that break a window, if some
            older admitted release breaks none; "" if all break one.
    """

    window: ReleaseWindow
    severity: Severity
    release: str
    below: str


def broken_window(
    facts: FactTables, package: str, specifiers: str, of: str, of_specifiers: str
) -> BrokenWindow | None:
    """Return the window that admitted releases break, None if the newest one breaks none."""
    windows = [
        window
        for window in facts.windows_of.get(package, ())
        if window.of == of and window.excludes(of_specifiers)
    ]
    if not windows:
        return None
    admitted = _admitted_releases(facts, package, specifiers)
    run: list[tuple[str, ReleaseWindow]] = []
    for release in reversed(admitted):
        window = _window_of(windows, release)
        if window is None:
            break
        run.append((release, window))
    if not run:
        return None
    release, newest = run[0]
    is_all = len(run) == len(admitted) and not _admits_older(facts, package, specifiers)
    severities = [window.admitted_severity() for _, window in run]
    lowest = Severity.WARNING if Severity.WARNING in severities else severities[0]
    return BrokenWindow(newest, lowest, release, "" if is_all else run[-1][0])


def broken_windows_among(facts: FactTables, versions: Mapping[str, str]) -> Iterator[ReleaseWindow]:
    """Yield the windows that a set of versions breaks, in the order of the table."""
    for package, windows in facts.windows_of.items():
        release = versions.get(package)
        if release is None or parse_version(release) is None:
            continue
        public = require_version(release).public
        for window in windows:
            other = parse_version(versions.get(window.of, ""))
            if (
                other is not None
                and window.includes(public)
                and window.excludes(f"=={other.public}")
            ):
                yield window


def unmet_requirements(
    facts: FactTables, versions: Mapping[str, str]
) -> Iterator[UndeclaredRequirement]:
    """Yield the undeclared requirements that a set of versions does not meet, as in the table.

    A requirement on the same release of another package has that release as its specifier.
    """
    for row in facts.undeclared:
        release, other = parse_version(versions.get(row.package, "")), versions.get(row.of, "")
        if release is None or parse_version(other) is None:
            continue
        if row.first and release < require_version(row.first):
            continue
        if row.last and release > require_version(row.last):
            continue
        is_same = row.specifier == SAME_RELEASE
        need = row._replace(specifier=f"=={release.public}") if is_same else row
        if not is_satisfiable(need.specifier, f"=={other}"):
            yield need


def _admitted_releases(facts: FactTables, package: str, specifiers: str) -> Sequence[str]:
    """Return the admitted releases that were read, and one that is newer than all of them."""
    admits = parse_specifiers(specifiers)
    read = facts.windows_read[package].releases
    admitted = admitted_versions(admits, read)
    if admitted:
        return admitted
    named = [clause.version for clause in admits if clause.operator == "=="]
    return [version for version in named if parse_version(version)]


def _admits_older(facts: FactTables, package: str, specifiers: str) -> bool:
    """Return whether releases are admitted that are older than all that were read."""
    oldest = facts.windows_read[package].releases[0]
    return has_version_in_range(parse_specifiers(specifiers), "0", oldest)


def _window_of(windows: Sequence[ReleaseWindow], release: str) -> ReleaseWindow | None:
    """Return the most severe window that a release breaks, with the strictest bound."""
    including = [window for window in windows if window.includes(release)]
    return min(including, key=lambda window: window.severity, default=None)


def is_declared(window: ReleaseWindow, of_specifiers: str) -> bool:
    """Return whether the newest releases of a window declare that they need other releases."""
    return bool(window.declared) and not is_satisfiable(window.declared, of_specifiers)
