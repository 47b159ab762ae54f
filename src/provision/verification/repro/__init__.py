"""A failed check as a program of its own: a short one of templates/repro/ where one shows it, else
the probe, packed, that asks this check alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pprint import pformat
from typing import Any

from provision.assets import find_asset
from provision.errors import Refused
from provision.verification.report import Report
from provision.verification.repro import gpu, host, packages, pytorch, training
from provision.verification.repro.failed_check import FailedCheck, NoShortProgram, Programs
from provision.verification.repro.packed_probe import pack_probe_for_check

CASE_PLACEHOLDER = '{"CASE": "HERE"}'
PROBE_PLACEHOLDER = "PROBE HERE"
REPRODUCIBLE_STATUSES = ("fail", "warn")
PROGRAMS: Programs = {
    **host.PROGRAMS,
    **packages.PROGRAMS,
    **gpu.PROGRAMS,
    **pytorch.PROGRAMS,
    **training.PROGRAMS,
}
_LONG, _WIDTH = 1000, 150
_MALFORMED_REPORT_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What a report that no probe wrote makes the values raise."""


def build_repro_program(report: Report, name: str, promised: Mapping[str, Any]) -> str:
    """Return a program that ends with 1 while what the check `name` has found is there, with 0 when
    it is mended, with 2 where that cannot be told.

    `promised` are the expectations that the report answers, {} where they are not at hand.
    Raises Refused where the report has no such failure, and where
    the report alone says too little and the expectations are not at hand.
    """
    check = _find_failed_check(report, name)
    about = f"{name} {check.get('title')}: {check.get('message')}"[:300]
    readings = {str(one["key"]): one.get("value") for one in report.readings}
    reasons: list[str] = []
    for program, case in _short_programs(
        FailedCheck(check, readings, report.document, promised), reasons
    ):
        return _fill_template(program, {"about": about, **case})
    if not promised:
        why = (
            reasons[0]
            if reasons
            else "no short program shows it; the probe does, and has to know what was asked"
        )
        hint = (
            "name the spec that the report answers (--spec SPEC --target NAME), or put the "
            "expectations.json that it was asked with beside it"
        )
        raise Refused(
            f"the report alone is not enough for a program for {name}", why=why, hint=hint
        )
    tier = report.document.get("tier")
    case, probe = pack_probe_for_check(name, promised, tier if isinstance(tier, str) else "")
    return _fill_template("carried", {"about": about, **case}, probe)


def _short_programs(
    failed: FailedCheck, reasons: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the short programs that show the failure, each with its values; the reasons against the
    others are added to `reasons`.
    """
    for program, values in PROGRAMS.get(failed.check_id, ()):
        try:
            yield program, values(failed)
        except NoShortProgram as error:
            reasons.append(str(error))
        except _MALFORMED_REPORT_ERRORS:
            reasons.append("the values that the short program needs are not in the report")


def _find_failed_check(report: Report, name: str) -> Mapping[str, Any]:
    checks = [check for check in report.document["checks"] if isinstance(check, Mapping)]
    failed = [
        str(check.get("id")) for check in checks if check.get("status") in REPRODUCIBLE_STATUSES
    ]
    check = next((check for check in checks if check.get("id") == name), None)
    hint = f"it holds: {', '.join(failed[:12])}" if failed else "nothing failed in it"
    if check is None:
        raise Refused(f"the report has no check {name}", hint=hint)
    if check.get("status") not in REPRODUCIBLE_STATUSES:
        raise Refused(f"{name} did not fail", why=f"it ended as {check.get('status')}", hint=hint)
    return check


def _fill_template(program: str, case: Mapping[str, Any], probe: str = "") -> str:
    template = find_asset(f"templates/repro/{program}.py").read_text(encoding="utf-8")
    literal = repr(dict(case))
    if len(literal) > _LONG:
        literal = pformat(dict(case), width=_WIDTH, sort_dicts=False)
    if ast.literal_eval(literal) != case:
        raise Refused(
            "there is no program for this check", why="its values cannot be written as data"
        )
    # The probe first: what the report says is never looked through for a place.
    return template.replace(PROBE_PLACEHOLDER, probe).replace(CASE_PLACEHOLDER, literal)
