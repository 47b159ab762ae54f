"""Findings as JUnit XML: a suite for each file, a case for each finding."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from provision.diagnostics import Severity
from provision.views.diagnostics.findings_in_files import (
    CheckedFiles,
    describe_error,
    describe_finding,
)
from provision.views.xml_elements import make_element, render_document

_RANKS = list(Severity)


def render_junit_findings(files: CheckedFiles) -> str:
    """Return a document in which findings that fail are failures, and others are skipped cases.

    A file without findings has a case that passes; one that could not be read has an error.
    """
    suites: dict[str, list[ET.Element]] = {}
    for (findings, source), fail_on in zip(files.documents, files.fail_on, strict=True):
        for name in source.files if not findings else ():
            suites.setdefault(files.path(name), [])
        part = files._replace(documents=[(findings, source)])
        for finding, span, _ in part.located():
            about = {
                "classname": finding.id,
                "name": f"{finding.name} at {span.start.line}:{span.start.column}",
                "time": "0",
            }
            case = make_element("testcase", about)
            fails = _RANKS.index(finding.severity) <= _RANKS.index(fail_on)
            details = {"message": finding.message}
            if fails:
                details["type"] = finding.severity.value
            case.append(
                make_element("failure" if fails else "skipped", details, describe_finding(finding))
            )
            suites.setdefault(files.path(span.file), []).append(case)
    for name, error in files.unread:
        case = make_element("testcase", {"classname": "file", "name": "is read", "time": "0"})
        details = {"message": error.what, "type": "unreadable-file"}
        case.append(make_element("error", details, describe_error(error)))
        suites.setdefault(files.path(name), []).append(case)
    root = ET.Element("testsuites")
    for name, found in suites.items():
        passed = {"classname": "file", "name": "has no findings", "time": "0"}
        cases = found or [make_element("testcase", passed)]
        counts = Counter(outcome.tag for case in cases for outcome in case)
        about = {
            "name": name,
            "tests": str(len(cases)),
            "failures": str(counts["failure"]),
            "errors": str(counts["error"]),
            "skipped": str(counts["skipped"]),
            "time": "0",
        }
        suite = make_element("testsuite", about)
        suite.extend(cases)
        root.append(suite)
    return render_document(root)
