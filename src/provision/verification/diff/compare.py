"""Comparison of two reports: their differences, and which of them explain a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from provision.agent.probe.model import ReadingClass
from provision.verification.diff.check_changes import checks_by_id, find_check_changes
from provision.verification.diff.derived import (
    NO_LOCKED_PACKAGES,
    Derivations,
    LockedPackages,
    reported_requirers,
)
from provision.verification.diff.model import (
    CheckPair,
    ReadingDifference,
    ReadingPair,
    ReportComparison,
    ReportSide,
)
from provision.verification.report import Report

_TOLERANCES: tuple[tuple[str, float], ...] = (("train.loss_*", 0.02), ("*_error", 0.5))
"""Share of the larger value by which measurements may differ. Losses: our choice, runs of one
environment repeat exactly. Errors of products: the kinds of
arithmetic lie further apart (tf32 2.9e-4, bf16 1.66e-3 and, split along K, 4.0e-3 relative
Frobenius error).
"""
_ORDER = (
    ReadingClass.IDENTITY,
    ReadingClass.EXACT,
    ReadingClass.MEASUREMENT,
    ReadingClass.IDENTITY_WEAK,
    ReadingClass.CONTEXT,
)
_PER_GPU_PREFIX = "nvml."
"""Lists below it hold a value for each card: two cards that tell what one tells do not differ in
it, but in their number.
"""


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
    differences = _with_builds({one.key: one for one in _differing(in_a, in_b)})
    pairs = tuple(_align_readings(in_a, in_b, differences))
    roots = _roots(differences, _derivations(a, b, known))
    grouped = _grouped(differences, roots)
    changes = tuple(find_check_changes(a, b, roots, grouped))
    decisive = {cause.key for change in changes if change.breaks for cause in change.causes}
    ranked = sorted(
        grouped.values(),
        key=lambda one: (one.key not in decisive, _ORDER.index(one.kind), one.key),
    )
    return ReportComparison(
        _side(names[0], a),
        _side(names[1], b),
        changes,
        tuple(ranked),
        tuple(pair.key for pair in pairs if pair.differs is None),
        sum(key not in differences for key in in_a.keys() & in_b.keys()),
        pairs,
        tuple(_align_checks(a, b)),
    )


def _side(name: str, report: Report) -> ReportSide:
    return ReportSide(
        name, report.verdict, report.identity, report.spec_name, report.environment_digest
    )


def _readings(
    report: Report, other: Report, known: LockedPackages
) -> dict[str, tuple[ReadingClass, Any]]:
    """Return the readings by key, packages included.

    With `known` these are all locked packages; otherwise, for two reports of one lock, those that
    differ from the lock on either side.
    """
    kinds = {kind.value: kind for kind in ReadingClass}
    rows = [
        row
        for row in report.readings
        if str(row.get("class")) in kinds and not _is_unobserved(row.get("value"))
    ]
    found = {row["key"]: (kinds[str(row.get("class"))], row.get("value")) for row in rows}
    own, others = report.environment_digest, other.environment_digest
    if "packages.digest" not in found:
        return found
    if own in known.versions and others in known.versions:
        locked: dict[str, Any] = {
            **dict.fromkeys(known.versions[others]),
            **known.versions[own],
            **_differing_packages(report, "observed"),
        }
    elif own == others:
        locked = {
            **_differing_packages(other, "expected"),
            **_differing_packages(report, "observed"),
        }
    else:
        return found
    return {
        **{f"package.{name}": (ReadingClass.IDENTITY, version) for name, version in locked.items()},
        **found,
    }


def _is_unobserved(value: Any) -> bool:
    """Return whether a list has one empty value per card: nothing was observed."""
    return isinstance(value, list) and bool(value) and all(one is None for one in value)


def _derivations(a: Report, b: Report, known: LockedPackages) -> Derivations:
    keys = [row["key"] for report in (a, b) for row in report.readings]
    requirers: dict[str, set[str]] = {name: set(names) for name, names in known.requirers.items()}
    for report in (a, b):
        for name, names in reported_requirers(report.differences).items():
            requirers.setdefault(name, set()).update(names)
    return Derivations(
        requirers,
        frozenset(key.removeprefix("package.") for key in keys if key.startswith("package.")),
    )


def _differing_packages(report: Report, part: str) -> dict[str, Any]:
    return {str(row["name"]): row.get(part) for row in report.differences if "name" in row}


def _differing(had: Mapping[str, Any], has: Mapping[str, Any]) -> Iterator[ReadingDifference]:
    seen = "host.platform" in had and "host.platform" in has
    for key in sorted(had.keys() | has.keys()):
        kind = _kind(had, has, key)
        # Variables that matter are looked for on every device: one that is not told is not set. Any
        # other missing reading was not taken.
        if kind is ReadingClass.NOISE or not (
            (key in had and key in has) or (seen and key.startswith("env."))
        ):
            continue
        one, other = (side[key][1] if key in side else None for side in (had, has))
        if not _is_equal(key, kind, one, other):
            yield ReadingDifference(key, kind, one, other)


def _with_builds(found: dict[str, ReadingDifference]) -> dict[str, ReadingDifference]:
    """Add the build to the version of torch: some wheels leave it out of their metadata."""
    package, said = found.get("package.torch"), found.get("torch.version")
    if package is None or said is None:
        return found
    a, b = (_with_build(one, other) for one, other in ((package.a, said.a), (package.b, said.b)))
    return {**found, package.key: package._replace(a=a, b=b)}


def _with_build(version: Any, said: Any) -> Any:
    return said if str(said).startswith(f"{version}+") else version


def _kind(had: Mapping[str, Any], has: Mapping[str, Any], key: str) -> ReadingClass:
    kind: ReadingClass = (had.get(key) or has[key])[0]
    return kind


def _is_equal(key: str, kind: ReadingClass, one: Any, other: Any) -> bool:
    if kind is ReadingClass.MEASUREMENT and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other)
    ):
        band = next((share for pattern, share in _TOLERANCES if fnmatchcase(key, pattern)), 0.1)
        return bool(abs(one - other) <= band * max(abs(one), abs(other)))
    if (
        key.startswith(_PER_GPU_PREFIX)
        and isinstance(one, list)
        and isinstance(other, list)
        and len(one) != len(other)
    ):
        return {str(value) for value in one} == {str(value) for value in other}
    return bool(one == other)


def _align_readings(
    had: Mapping[str, Any], has: Mapping[str, Any], found: Mapping[str, ReadingDifference]
) -> Iterator[ReadingPair]:
    for key in sorted(had.keys() | has.keys()):
        kind = _kind(had, has, key)
        if kind is ReadingClass.NOISE:
            continue
        differs: bool | None = key in found
        if not differs and (key in had) != (key in has):
            differs = None
        a, b = (side[key][1] if key in side else None for side in (had, has))
        yield ReadingPair(key, kind, a, b, differs)


def _align_checks(a: Report, b: Report) -> Iterator[CheckPair]:
    checks_a, checks_b = checks_by_id(a), checks_by_id(b)
    for check_id in dict.fromkeys([*checks_a, *checks_b]):
        row_a, row_b = checks_a.get(check_id, {}), checks_b.get(check_id, {})
        known = row_a or row_b
        yield CheckPair(
            check_id,
            str(known.get("group") or ""),
            str(known.get("title") or ""),
            str(row_a.get("status") or ""),
            str(row_b.get("status") or ""),
            (str(row_a.get("message") or ""), str(row_b.get("message") or "")),
        )


def _roots(found: Mapping[str, ReadingDifference], kin: Derivations) -> dict[str, str]:
    hashed = frozenset(key for key, one in found.items() if one.kind is ReadingClass.EXACT)
    return {key: kin.root_of(key, hashed, found) for key in found}


def _grouped(
    found: Mapping[str, ReadingDifference], tops: Mapping[str, str]
) -> dict[str, ReadingDifference]:
    """Return the differences that follow from no other, by key, with their followers.

    A group has the class of its weightiest member.
    """
    groups: dict[str, list[str]] = {}
    for key, parent in tops.items():
        groups.setdefault(parent, [])
        if key != parent:
            groups[parent].append(key)
    kinds = {
        parent: min((found[key].kind for key in (parent, *members)), key=_ORDER.index)
        for parent, members in groups.items()
    }
    return {
        parent: found[parent]._replace(followers=tuple(members), kind=kinds[parent])
        for parent, members in groups.items()
    }
