"""Findings in the format of reviewdog (reviewdog/reviewdog, proto/rdf): columns count bytes."""

from __future__ import annotations

from functools import cache
from typing import Any

from provision.diagnostics import Applicability, Diagnostic, Position, Severity, Span
from provision.sanitize import redact
from provision.views.diagnostics.excerpt import split_lines
from provision.views.diagnostics.findings_in_files import (
    CheckedFiles,
    describe_error,
    describe_finding,
)
from provision.views.diagnostics.secret_filter import may_contain_secret
from provision.views.diagnostics.source_location import SpecSource

_SEVERITIES = {
    Severity.ERROR: "ERROR",
    Severity.WARNING: "WARNING",
    Severity.UNKNOWN: "INFO",
    Severity.INFO: "INFO",
}


def to_rdjson(files: CheckedFiles) -> dict[str, Any]:
    """Return a DiagnosticResult with the findings and the files that could not be read."""
    diagnostics = [
        {
            "message": describe_finding(finding),
            "location": {"path": files.path(span.file), "range": _range(span, source)},
            "severity": _SEVERITIES[finding.severity],
            "code": {"value": finding.id},
            "suggestions": _suggestions(finding, source),
        }
        for finding, span, source in files.located()
    ]
    diagnostics += [
        {
            "message": describe_error(error),
            "location": {"path": files.path(name)},
            "severity": "ERROR",
            "code": {"value": "unreadable-file"},
            "suggestions": [],
        }
        for name, error in files.unread
    ]
    return {"source": {"name": "provision"}, "diagnostics": diagnostics}


def _suggestions(finding: Diagnostic, source: SpecSource) -> list[dict[str, Any]]:
    """Return the edits of a safe fix; of several edits reviewdog would apply only one."""
    fix = finding.fix
    if fix is None or fix.applicability is not Applicability.SAFE or may_contain_secret(finding):
        return []
    changes = source.text_changes(fix)
    if len(changes) != 1 or any(redact(text) != text for _, text in changes):
        return []
    return [{"range": _range(span, source), "text": text} for span, text in changes]


def _range(span: Span, source: SpecSource) -> dict[str, Any]:
    lines = _split(source.files.get(span.file, ""))
    return {"start": _position(span.start, lines), "end": _position(span.end, lines)}


def _position(position: Position, lines: list[str]) -> dict[str, int]:
    line = lines[position.line - 1] if position.line <= len(lines) else ""
    column = len(line[: position.column - 1].encode(errors="replace")) + 1
    return {"line": position.line, "column": column}


@cache
def _split(text: str) -> list[str]:
    return split_lines(text)
