"""Checks with different statuses in two reports, and the differences that can explain them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import filter as match_names
from typing import Any

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.model import Status
from provision.verification.diff.model import CheckChange, ReadingPair
from provision.verification.report import Report, ReportedCheck

_SEVERITY = (Status.PASS, Status.SKIP, Status.WARN, Status.UNKNOWN, Status.FAIL)
_CATALOGUE = {check.id: check for check in CHECKS}


def find_check_changes(
    a: Report, b: Report, roots: Mapping[str, str], grouped: Mapping[str, ReadingPair]
) -> list[CheckChange]:
    """Return the checks whose status differs, those that break first.

    Checks that were left out because of another one are its followers.
    """
    in_b = {check.id: check for check in b.checks}
    changed = {
        check.id: (check, in_b[check.id])
        for check in a.checks
        if check.id in in_b and check.status is not in_b[check.id].status
    }
    parents: dict[str, str | None] = {}
    for id_, (check, _) in changed.items():
        known = _CATALOGUE.get(check.base_id)
        after = known.after if known else ()
        parents[id_] = next((other for other in after if other in changed), None)
    changes = [
        _check_change(check_a, check_b, roots, grouped, (a, b))._replace(
            followers=tuple(_dependent_checks(id_, parents))
        )
        for id_, (check_a, check_b) in changed.items()
        if parents[id_] is None or Status.FAIL in (check_a.status, check_b.status)
    ]
    return sorted(
        changes,
        key=lambda change: (
            not change.breaks,
            -max(_SEVERITY.index(change.a), _SEVERITY.index(change.b)),
            not change.required,
            change.worse == "a",
        ),
    )


def _dependent_checks(id_: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    for other, parent in parents.items():
        if parent == id_:
            yield other
            yield from _dependent_checks(other, parents)


def _check_change(
    a: ReportedCheck,
    b: ReportedCheck,
    roots: Mapping[str, str],
    grouped: Mapping[str, ReadingPair],
    reports: tuple[Report, Report],
) -> CheckChange:
    side = int(_SEVERITY.index(b.status) >= _SEVERITY.index(a.status))
    worse = (a, b)[side]
    patterns, named = _causes(worse, reports[side])
    keys = [key for pattern in patterns for key in match_names(roots, pattern)]
    causes = tuple(grouped[root] for root in dict.fromkeys(roots[key] for key in keys))
    declared = () if named else _differing_expectations(a, b, bool(causes))
    return CheckChange(
        id=a.id,
        title=a.title,
        a=a.status,
        b=b.status,
        worse="ab"[side],
        required=a.required or b.required,
        message=worse.message,
        fix=worse.fix,
        causes=() if declared else causes,
        declared=declared,
    )


def _causes(check: ReportedCheck, report: Report) -> tuple[list[str], bool]:
    """Return patterns of the readings that can cause a failure, and whether the report names them.

    A report names the packages that differ from the lock.
    """
    known = _CATALOGUE.get(check.base_id)
    patterns = list(dict.fromkeys((*(known.causes if known else ()), *check.causes)))
    if {"packages.digest", "package.*"} <= {*patterns} and report.differences:
        return [f"package.{row.get('name')}" for row in report.differences], True
    return patterns, False


def _differing_expectations(a: ReportedCheck, b: ReportedCheck, caused: bool) -> tuple[Any, ...]:
    """Return both expected values if they, and no reading, can explain the change; else ()."""
    expected = (a.expected, b.expected)
    failed = Status.FAIL in (a.status, b.status)
    if not failed or None in expected or a.expected == b.expected:
        return ()
    same = a.observed is not None and a.observed == b.observed
    return expected if same or not caused else ()
