"""Reports as JUnit XML, for CI services that show test results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as ET

from provision.agent.probe.model import Status
from provision.verification.report import Report, ReportedCheck
from provision.views.report.model import ReportView, check_fields
from provision.views.xml_elements import make_element, render_document

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?=Z?\Z)")
_EPOCH = "1970-01-01T00:00:00"


def render_junit(reports: Iterable[Report], unreported: Mapping[str, str] | None = None) -> str:
    """Return the reports as one document with a suite for each.

    A failed check is a failure, a required one that is unknown an error, any other that was not
    observed is skipped. Warnings are in system-out. The first case of a suite is its verdict, so
    that no suite is green whose verdict is not. `unreported` has the error of each target without
    a report, which becomes a suite.
    """
    root = ET.Element("testsuites")
    root.extend(_suite(number, ReportView(report)) for number, report in enumerate(reports))
    for label, error in (unreported or {}).items():
        root.append(_unreported_suite(len(root), label, error))
    return render_document(root)


def _unreported_suite(number: int, label: str, error: str) -> ET.Element:
    case = _verdict_case()
    case.append(make_element("error", {"type": "not verified", "message": error}, error))
    about = {"name": label, "package": "provision", "id": str(number), "timestamp": _EPOCH}
    about |= {"hostname": "localhost", "tests": "1", "failures": "0", "errors": "1"}
    suite = make_element("testsuite", {**about, "skipped": "0", "time": "0.000"})
    suite.append(ET.Element("properties"))
    suite.append(case)
    suite.extend([ET.Element("system-out"), ET.Element("system-err")])
    return suite


def _suite(number: int, view: ReportView) -> ET.Element:
    cases = [_verdict(view), *map(_case, view.checks)]
    counts = Counter(outcome.tag for case in cases for outcome in case)
    report, subject = view.report, view.report.subject
    time = _TIME.match(subject.created_utc)
    about = {
        "name": f"{report.spec_name or 'provision'}.{subject.target or 'report'}",
        "package": "provision",
        "id": str(number),
        "timestamp": time.group() if time else _EPOCH,
        # A report does not name its machine: the schema requires "localhost" then.
        "hostname": "localhost",
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": f"{view.seconds:.3f}",
    }
    suite = make_element("testsuite", about)
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("tier", report.tier),
        ("identity", report.identity),
        ("lock", report.text("lock", "digest")),
        ("environment", report.environment_digest),
    ):
        if value:
            properties.append(make_element("property", {"name": name, "value": value}))
    suite.extend(cases)
    warnings = [f"{check.id} {check.title}: {check.message}" for check in view.of(Status.WARN)]
    tails = [stage.tail for stage in view.stages if stage.tail]
    suite.append(make_element("system-out", {}, "\n".join(warnings)))
    suite.append(make_element("system-err", {}, "\n".join(tails)))
    return suite


def _verdict(view: ReportView) -> ET.Element:
    report, case = view.report, _verdict_case()
    about = {"message": report.sentence}
    if report.verdict == "simulated":
        case.append(make_element("skipped", about))
    elif report.verdict != "verified":
        kind = "failure" if report.verdict == "failed" else "error"
        case.append(make_element(kind, {"type": view.headline, **about}, report.sentence))
    return case


def _verdict_case() -> ET.Element:
    about = {"classname": "verdict", "name": "is the declared environment", "time": "0.000"}
    return make_element("testcase", about)


def _case(check: ReportedCheck) -> ET.Element:
    name, time = f"{check.id} {check.title}", f"{check.seconds:.3f}"
    case = make_element("testcase", {"classname": check.group, "name": name, "time": time})
    if check.status is Status.FAIL or (check.status is Status.UNKNOWN and check.required):
        kind = "failure" if check.status is Status.FAIL else "error"
        details = "\n".join(f"{label}: {text}" for label, text in check_fields(check))
        case.append(make_element(kind, {"type": check.id, "message": check.message}, details))
    elif check.status in (Status.UNKNOWN, Status.SKIP):
        case.append(make_element("skipped", {"message": check.message}))
    return case
