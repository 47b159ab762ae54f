"""Reports as JUnit XML, for CI services that show test results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from provision.agent.probe.model import Status
from provision.views.report.model import HEADLINES, CheckLine, ReportView, build_report_view

_BEYOND_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even as a reference (section 2.2)."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?=Z?\Z)")
_EPOCH = "1970-01-01T00:00:00"


def render_junit(reports: Iterable[Mapping[str, Any]]) -> str:
    """Return the reports as one document with a suite for each.

    A failed check is a failure, a required one that is unknown an error, any other that was not
    observed is skipped. Warnings are in system-out. The first case of a suite is its verdict, so
    that no suite is green whose verdict is not.
    """
    root = ET.Element("testsuites")
    root.extend(_suite(number, build_report_view(report)) for number, report in enumerate(reports))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(number: int, view: ReportView) -> ET.Element:
    cases = [_verdict(view), *(_case(line) for line in view.lines)]
    count = {
        kind: str(sum(case.find(kind) is not None for case in cases))
        for kind in ("failure", "error", "skipped")
    }
    time = _TIME.match(view.created)
    about = {
        "name": f"{view.name or 'provision'}.{view.target or 'report'}",
        "package": "provision",
        "id": str(number),
        "timestamp": time.group() if time else _EPOCH,
        # A report does not say on which machine it was made; the schema asks for "localhost" then.
        "hostname": "localhost",
        "tests": str(len(cases)),
        "failures": count["failure"],
        "errors": count["error"],
        "skipped": count["skipped"],
        "time": f"{view.seconds:.3f}",
    }
    suite = _element("testsuite", about)
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("tier", view.tier),
        ("identity", view.identity),
        ("lock", view.lock_digest),
        ("environment", view.environment_digest),
    ):
        if value:
            properties.append(_element("property", {"name": name, "value": value}))
    suite.extend(cases)
    warnings = [f"{line.id} {line.title}: {line.message}" for line in view.of(Status.WARN)]
    tails = [stage.tail for stage in view.stages if stage.tail]
    suite.append(_element("system-out", {}, "\n".join(warnings)))
    suite.append(_element("system-err", {}, "\n".join(tails)))
    return suite


def _verdict(view: ReportView) -> ET.Element:
    case = _element(
        "testcase", {"classname": "verdict", "name": "is the declared environment", "time": "0.000"}
    )
    kind = {"verified": "", "simulated": "skipped", "failed": "failure"}.get(view.result, "error")
    if kind:
        case.append(_outcome(kind, HEADLINES[view.result], view.sentence, view.sentence))
    return case


def _case(line: CheckLine) -> ET.Element:
    case = _element(
        "testcase",
        {"classname": line.group, "name": f"{line.id} {line.title}", "time": f"{line.seconds:.3f}"},
    )
    match line.status:
        case Status.FAIL:
            case.append(_outcome("failure", line.id, line.message, "\n".join(_details(line))))
        case Status.UNKNOWN if line.required:
            case.append(_outcome("error", line.id, line.message, "\n".join(_details(line))))
        case Status.UNKNOWN | Status.SKIP:
            case.append(_element("skipped", {"message": line.message}))
        case _:
            pass
    return case


def _details(line: CheckLine) -> Iterator[str]:
    said = (
        ("declared", line.expected),
        ("found", line.found),
        ("why", line.cause or line.message),
        ("fix", line.fix),
    )
    return (f"{word}: {text}" for word, text in said if text)


def _outcome(kind: str, type_: str, message: str, text: str) -> ET.Element:
    if kind == "skipped":
        return _element(kind, {"message": message})
    return _element(kind, {"type": type_, "message": message}, text)


def _element(tag: str, attributes: Mapping[str, str], text: str = "") -> ET.Element:
    element = ET.Element(tag, {key: _xml(value) for key, value in attributes.items()})
    element.text = _xml(text) or None
    return element


def _xml(text: str) -> str:
    return _BEYOND_XML.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
