"""A failed check as a standalone program: a short one of templates/repro, or the packed probe."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pprint import pformat
from typing import Any

from provision.agent.probe.model import Status
from provision.assets import find_asset
from provision.errors import Refused
from provision.verification.report import Report, ReportedCheck
from provision.verification.repro.packed_probe import pack_probe_for_check
from provision.verification.repro.short_programs import (
    SHORT_PROGRAMS,
    FailedCheck,
    NoShortProgram,
)

CASE_PLACEHOLDER = '{"CASE": "HERE"}'
PROBE_PLACEHOLDER = "PROBE HERE"
REPRODUCIBLE_STATUSES = (Status.FAIL, Status.WARN)
_PACKED_PROBE = "packed_probe"
_MAX_INLINE_LENGTH = 100
_LITERAL_WIDTH = 100
_MALFORMED_REPORT_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""Exceptions of the builders for a report that no probe wrote."""


def build_repro_program(report: Report, check_id: str, expectations: Mapping[str, Any]) -> str:
    """Return a program that exits 1 while a check fails, 0 when it passes, 2 when neither shows.

    Args:
        report: The report with the failure.
        check_id: The check, with its package if it has one: `P06:numpy`.
        expectations: The expectations that the report answers, or {} if they are not known.

    Raises:
        Refused: the report has no such failure, or the expectations are needed and missing.
    """
    check = _find_failed_check(report, check_id)
    about = f"{check_id} {check.title}: {check.message}"[:300]
    reason = (
        "there is no short program for this check, and the full program needs the "
        "report's expectations"
    )
    if short := SHORT_PROGRAMS.get(check.base_id):
        template, build_case = short
        failed = FailedCheck(check, report.values, report.subject.proof, expectations)
        try:
            case = build_case(failed)
            return _fill_template(template, {"about": about, **case})
        except NoShortProgram as error:
            reason = str(error)
        except _MALFORMED_REPORT_ERRORS:
            reason = "the report does not contain the values that the short program needs"
    if not expectations:
        raise Refused(
            f"the report alone is not sufficient to reproduce {check_id}",
            why=reason,
            hint="pass the report's spec (--spec SPEC --target NAME), or put its "
            "expectations.json next to the report",
        )
    case, probe = pack_probe_for_check(check_id, expectations, report.tier)
    return _fill_template(_PACKED_PROBE, {"about": about, **case}, probe)


def _find_failed_check(report: Report, check_id: str) -> ReportedCheck:
    failed = [check.id for check in report.checks if check.status in REPRODUCIBLE_STATUSES]
    hint = f"failed checks: {', '.join(failed[:12])}" if failed else "no check failed"
    check = next((check for check in report.checks if check.id == check_id), None)
    if check is None:
        raise Refused(f"the report has no check {check_id}", hint=hint)
    if check.status not in REPRODUCIBLE_STATUSES:
        raise Refused(
            f"{check_id} did not fail", why=f"its status is {check.status.value}", hint=hint
        )
    return check


def _fill_template(template: str, case: dict[str, Any], probe: str = "") -> str:
    text = find_asset(f"templates/repro/{template}.py").read_text(encoding="utf-8")
    literal = repr(case)
    if len(literal) > _MAX_INLINE_LENGTH:
        literal = pformat(case, width=_LITERAL_WIDTH, sort_dicts=False)
    if ast.literal_eval(literal) != case:
        raise Refused(
            "this check cannot be reproduced", why="its values cannot be written as Python literals"
        )
    # The probe first: a report's text may contain the probe's placeholder.
    return text.replace(PROBE_PLACEHOLDER, probe).replace(CASE_PLACEHOLDER, literal)
