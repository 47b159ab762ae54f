"""Checks with different statuses in two reports, and the differences that can explain them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.model import Status
from provision.verification.diff.model import CheckChange, ReadingDifference
from provision.verification.report import Report

_SEVERITY = (Status.PASS, Status.SKIP, Status.WARN, Status.UNKNOWN, Status.FAIL)
_CheckRows = tuple[Mapping[str, Any], Mapping[str, Any]]


def find_check_changes(
    a: Report, b: Report, tops: Mapping[str, str], grouped: Mapping[str, ReadingDifference]
) -> Iterator[CheckChange]:
    """Yield the checks whose status differs, those that break first.

    Checks that were left out because of another one are its followers.
    """
    checks = [checks_by_id(report) for report in (a, b)]
    moved = {
        id_: (one, checks[1][id_])
        for id_, one in checks[0].items()
        if id_ in checks[1] and one.get("status") != checks[1][id_].get("status")
    }
    after = {check.id: check.after for check in CHECKS}
    under = {
        id_: next((other for other in after.get(_base_id(id_), ()) if other in moved), None)
        for id_ in moved
    }
    turns = [
        _check_change(id_, pair, tops, grouped, (a, b))._replace(
            followers=tuple(_dependent_checks(id_, under))
        )
        for id_, pair in moved.items()
        if under[id_] is None or any(one.get("status") == Status.FAIL for one in pair)
    ]
    yield from sorted(
        turns,
        key=lambda turn: (
            not turn.breaks,
            -max(_rank(turn.a), _rank(turn.b)),
            not turn.required,
            turn.worse == "a",
        ),
    )


def checks_by_id(report: Report) -> dict[str, Mapping[str, Any]]:
    """Return the checks of a report by id."""
    return {str(check["id"]): check for check in report.checks if "id" in check}


def _dependent_checks(id_: str, under: Mapping[str, str | None]) -> Iterator[str]:
    for other, parent in under.items():
        if parent == id_:
            yield other
            yield from _dependent_checks(other, under)


def _check_change(
    id_: str,
    pair: _CheckRows,
    tops: Mapping[str, str],
    grouped: Mapping[str, ReadingDifference],
    reports: tuple[Report, Report],
) -> CheckChange:
    one, other = pair
    turned = _rank(other.get("status")) >= _rank(one.get("status"))
    worse = other if turned else one
    patterns, named = _causes(id_, worse, reports[turned])
    keys = [key for pattern in patterns for key in tops if fnmatchcase(key, pattern)]
    causes = tuple(grouped[top] for top in dict.fromkeys(tops[key] for key in keys))
    apart = () if named else _differing_expectations(one, other, bool(causes))
    return CheckChange(
        id=id_,
        title=str(one.get("title", "")),
        a=str(one.get("status")),
        b=str(other.get("status")),
        worse="b" if turned else "a",
        required=bool(one.get("required") or other.get("required")),
        message=str(worse.get("message") or ""),
        fix=str(worse.get("fix") or ""),
        causes=() if apart else causes,
        declared=apart,
    )


def _causes(id_: str, worse: Mapping[str, Any], report: Report) -> tuple[list[str], bool]:
    """Return patterns of the readings that can cause a failure, and whether the report names them.

    A report names the packages that differ from the lock.
    """
    known = next((check.causes for check in CHECKS if check.id == _base_id(id_)), ())
    patterns, reported = list(known), worse.get("causes")
    if isinstance(reported, list):
        patterns = list(dict.fromkeys([*known, *map(str, reported)]))
    if {"packages.digest", "package.*"} <= {*patterns} and report.differences:
        return [f"package.{row.get('name')}" for row in report.differences], True
    return patterns, False


def _differing_expectations(
    one: Mapping[str, Any], other: Mapping[str, Any], caused: bool
) -> tuple[Any, ...]:
    """Return both expected values if they, and no reading, can explain the change; else ()."""
    expected = (one.get("expected"), other.get("expected"))
    failed = Status.FAIL in (one.get("status"), other.get("status"))
    if not failed or None in expected or expected[0] == expected[1]:
        return ()
    same = one.get("observed") is not None and one.get("observed") == other.get("observed")
    return expected if same or not caused else ()


def _rank(status: Any) -> int:
    return next((rank for rank, known in enumerate(_SEVERITY) if known == status), len(_SEVERITY))


def _base_id(id_: str) -> str:
    return id_.partition(":")[0]
