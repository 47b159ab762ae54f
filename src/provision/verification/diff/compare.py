"""Comparison of two reports: their differences, and which of them explain a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from provision.agent.probe.model import ReadingClass
from provision.verification.diff.check_changes import find_check_changes
from provision.verification.diff.derived import (
    NO_LOCKED_PACKAGES,
    PACKAGE,
    Derivations,
    LockedPackages,
)
from provision.verification.diff.model import (
    CheckPair,
    ReadingPair,
    ReportComparison,
    ReportSide,
)
from provision.verification.report import Report, to_number

_TOLERANCES: tuple[tuple[str, float], ...] = (("train.loss_*", 0.02), ("*_error", 0.5))
"""Share of the larger value by which measurements may differ. Losses: our choice, runs of one
environment repeat exactly. Errors of products: the kinds of
arithmetic lie further apart (tf32 2.9e-4, bf16 1.66e-3 and, split along K, 4.0e-3 relative
Frobenius error).
"""
_CLASSES = {kind.value: kind for kind in ReadingClass}
_ORDER = (
    ReadingClass.IDENTITY,
    ReadingClass.EXACT,
    ReadingClass.MEASUREMENT,
    ReadingClass.IDENTITY_WEAK,
    ReadingClass.CONTEXT,
)
_PER_GPU_PREFIX = "nvml."
"""Lists with this prefix have a value for each card.

Two equal cards do not differ from one of them in it, but in their number.
"""
_Readings = dict[str, tuple[ReadingClass, Any]]


def compare_reports(
    a: Report, b: Report, names: tuple[str, str], known: LockedPackages = NO_LOCKED_PACKAGES
) -> ReportComparison:
    """Compare two reports; a report compared with itself has no differences.

    Args:
        a: The first report.
        b: The second report.
        names: The names of both.
        known: The packages of their lock.
    """
    in_a, in_b = _readings(a, b, known), _readings(b, a, known)
    readings = tuple(_align_readings(in_a, in_b))
    differences = _with_builds({pair.key: pair for pair in readings if pair.differs})
    derivations = _derivations(a, b, known)
    hashed = [key for key, pair in differences.items() if pair.kind is ReadingClass.EXACT]
    roots = {key: derivations.root_of(key, hashed, differences) for key in differences}
    grouped = _grouped(differences, roots)
    changes = find_check_changes(a, b, roots, grouped)
    decisive = {cause.key for change in changes if change.breaks for cause in change.causes}
    ranked = sorted(
        grouped.values(),
        key=lambda pair: (
            pair.key != "code.digest",
            pair.key not in decisive,
            _ORDER.index(pair.kind),
            # The packages that the spec names come before those that others require.
            pair.key.startswith(PACKAGE) and not derivations.declares(pair.key),
            pair.key,
        ),
    )
    return ReportComparison(
        _side(names[0], a),
        _side(names[1], b),
        tuple(changes),
        tuple(ranked),
        tuple(pair.key for pair in readings if pair.differs is None),
        len(in_a.keys() & in_b.keys() - differences.keys()),
        readings,
        tuple(_align_checks(a, b)),
    )


def _side(name: str, report: Report) -> ReportSide:
    return ReportSide(
        name, report.verdict, report.identity, report.spec_name, report.environment_digest
    )


def _readings(report: Report, other: Report, known: LockedPackages) -> _Readings:
    """Return the readings by key, packages included.

    These are the packages that both reports list. If a report lists none: with `known` all locked
    packages, otherwise, for two reports of one lock, those that differ from the lock on either
    side.
    """
    readings = {
        row["key"]: (_CLASSES[row["class"]], row.get("value"))
        for row in report.readings
        if row.get("class") in _CLASSES and not _is_unobserved(row.get("value"))
    }
    own, others = report.environment_digest, other.environment_digest
    locked: dict[str, Any]
    if report.installed is not None and other.installed is not None:
        locked = dict(report.installed)
        if report.lists_all_packages:
            locked = {**dict.fromkeys(other.installed), **locked}
        return _package_readings(locked) | readings
    if own in known.versions and others in known.versions:
        locked = {**dict.fromkeys(known.versions[others]), **known.versions[own]}
    elif own == others:
        locked = _differing_packages(other, "expected")
    else:
        return readings
    if "packages.digest" not in readings:
        return readings
    locked |= _differing_packages(report, "observed")
    return _package_readings(locked) | readings


def _package_readings(versions: Mapping[str, Any]) -> _Readings:
    return {
        f"{PACKAGE}{name}": (ReadingClass.IDENTITY, version) for name, version in versions.items()
    }


def _is_unobserved(value: Any) -> bool:
    """Return whether a list has one empty value per card: nothing was observed."""
    return isinstance(value, list) and bool(value) and all(item is None for item in value)


def _derivations(a: Report, b: Report, known: LockedPackages) -> Derivations:
    requirers = {name: set(names) for name, names in known.requirers.items()}
    for row in (*a.differences, *b.differences):
        if isinstance(row.get("required_by"), list):
            requirers.setdefault(str(row.get("name")), set()).update(map(str, row["required_by"]))
    keys = (*a.values, *b.values)
    return Derivations(
        requirers,
        frozenset(key.removeprefix("package.") for key in keys if key.startswith("package.")),
    )


def _differing_packages(report: Report, part: str) -> dict[str, Any]:
    return {str(row["name"]): row.get(part) for row in report.differences if "name" in row}


def _align_readings(in_a: _Readings, in_b: _Readings) -> Iterator[ReadingPair]:
    hosts_observed = "host.platform" in in_a and "host.platform" in in_b
    for key in sorted(in_a.keys() | in_b.keys()):
        kind, _ = in_a.get(key) or in_b[key]
        if kind is ReadingClass.NOISE:
            continue
        a, b = (side[key][1] if key in side else None for side in (in_a, in_b))
        differs: bool | None = None
        # Variables that matter are looked for on every device: one that is missing is not set. Any
        # other missing reading was not taken.
        if (key in in_a and key in in_b) or (hosts_observed and key.startswith("env.")):
            differs = not _is_equal(key, kind, a, b)
        yield ReadingPair(key, kind, a, b, differs)


def _with_builds(differences: dict[str, ReadingPair]) -> dict[str, ReadingPair]:
    """Add the build to the version of torch: some wheels leave it out of their metadata."""
    package, torch = differences.get("package.torch"), differences.get("torch.version")
    if package is None or torch is None:
        return differences
    a, b = (
        imported if str(imported).startswith(f"{version}+") else version
        for version, imported in ((package.a, torch.a), (package.b, torch.b))
    )
    return {**differences, package.key: package._replace(a=a, b=b)}


def _is_equal(key: str, kind: ReadingClass, a: Any, b: Any) -> bool:
    numbers = to_number(a), to_number(b)
    if kind is ReadingClass.MEASUREMENT and None not in numbers:
        band = next((share for pattern, share in _TOLERANCES if fnmatchcase(key, pattern)), 0.1)
        return bool(abs(a - b) <= band * max(abs(a), abs(b)))
    lists = isinstance(a, list) and isinstance(b, list)
    if key.startswith(_PER_GPU_PREFIX) and lists and len(a) != len(b):
        return set(map(str, a)) == set(map(str, b))
    return bool(a == b)


def _align_checks(a: Report, b: Report) -> Iterator[CheckPair]:
    in_a, in_b = ({check.id: check for check in report.checks} for report in (a, b))
    for check_id in in_a | in_b:
        check_a, check_b = in_a.get(check_id), in_b.get(check_id)
        known = check_a or in_b[check_id]
        yield CheckPair(
            check_id,
            known.group,
            known.title,
            check_a.status if check_a else None,
            check_b.status if check_b else None,
            (check_a.message if check_a else "", check_b.message if check_b else ""),
        )


def _grouped(
    differences: Mapping[str, ReadingPair], roots: Mapping[str, str]
) -> dict[str, ReadingPair]:
    """Return the differences that follow from no other, by key, with their followers.

    A group has the class of its weightiest member.
    """
    groups: dict[str, ReadingPair] = {}
    for root in dict.fromkeys(roots.values()):
        members = [key for key, parent in roots.items() if parent == root]
        kind = min((differences[key].kind for key in members), key=_ORDER.index)
        followers = tuple(key for key in members if key != root)
        groups[root] = differences[root]._replace(followers=followers, kind=kind)
    return groups
