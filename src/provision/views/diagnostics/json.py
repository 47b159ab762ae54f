"""Findings as data: 1-based lines and code-point columns, 0-based offsets, exclusive ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from provision import __version__
from provision.diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Insert,
    Replace,
    Route,
    RouteLocation,
    Severity,
    Span,
    SuppressedFinding,
)
from provision.sanitize import redact
from provision.views.diagnostics.source_location import FindingSource
from provision.views.diagnostics.text import sort_findings

VERSION = 1


def findings_to_json(
    diagnostics: Sequence[Diagnostic],
    source: FindingSource,
    suppressed: Sequence[SuppressedFinding] = (),
) -> dict[str, Any]:
    """Return the findings of one document, sorted by file and place, and the accepted ones.

    Strings are exact but for secrets: dump them with `ensure_ascii`. A fix that `applies` can be
    made by `--fix` if it is "safe"; one that does not would change an extended file or a value
    that other places share.
    """
    return _envelope(
        [_finding(finding, source) for finding in sort_findings(diagnostics, source)],
        [_suppressed(item, source) for item in suppressed],
    )


def merge_documents(documents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return one answer for the findings of several documents, in the order given."""
    documents = list(documents)
    return _envelope(
        [finding for document in documents for finding in document["diagnostics"]],
        [finding for document in documents for finding in document["suppressed"]],
    )


def _envelope(findings: list[dict[str, Any]], suppressed: list[dict[str, Any]]) -> dict[str, Any]:
    severities = [finding["severity"] for finding in findings]
    counts = {severity.value: severities.count(severity.value) for severity in Severity}
    fixes = [finding["fix"] for finding in findings if finding["fix"] is not None]
    fixable = sum(
        fix["applies"] and fix["applicability"] == Applicability.SAFE.value for fix in fixes
    )
    return {
        "version": VERSION,
        "tool": {"name": "provision", "version": __version__},
        "summary": {**counts, "fixable": fixable, "suppressed": len(suppressed)},
        "diagnostics": findings,
        "suppressed": suppressed,
    }


def _suppressed(item: SuppressedFinding, source: FindingSource) -> dict[str, Any]:
    """Return an accepted finding, and who accepted it where and why."""
    where = item.where
    return {
        **_finding(item.finding, source),
        "suppression": {
            "kind": item.kind.value,
            "reason": redact(item.reason),
            "file": None if where is None else redact(where.file),
            "range": None if where is None else _range(where),
        },
    }


def _finding(finding: Diagnostic, source: FindingSource) -> dict[str, Any]:
    span = source.span(finding.where)
    return {
        "id": finding.id,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": redact(finding.message),
        "why": redact(finding.why),
        "help": redact(finding.help),
        "source": redact(finding.source),
        "file": redact(span.file),
        "document": source.document,
        "path": _path(finding.where.route) if isinstance(finding.where, RouteLocation) else None,
        "range": _range(span),
        "related": [
            {
                "message": redact(related.text),
                "file": redact(source.span(related.where).file),
                "range": _range(source.span(related.where)),
            }
            for related in finding.related
        ],
        "fix": None if finding.fix is None else _fix(finding.fix, source),
    }


def _fix(fix: Fix, source: FindingSource) -> dict[str, Any]:
    applies = bool(source.apply_fixes((fix,)))
    return {
        "title": redact(fix.title),
        "applicability": fix.applicability.value,
        "applies": applies,
        "edits": [_edit(edit, source) for edit in fix.edits],
    }


def _edit(edit: Edit, source: FindingSource) -> dict[str, Any]:
    match edit:
        case Replace(where, text):
            span = source.span(where)
            return {
                "kind": "replace",
                "file": redact(span.file),
                "range": _range(span),
                "text": redact(text),
            }
        case Insert(route, key, text):
            return {"kind": "insert", "path": _path(route), "key": key, "text": redact(text)}
        case _:
            assert_never(edit)


def _path(route: Route) -> list[str | int]:
    return [redact(part) if isinstance(part, str) else part for part in route]


def _range(span: Span) -> dict[str, Any]:
    return {
        side: {"line": position.line, "column": position.column, "offset": position.offset}
        for side, position in (("start", span.start), ("end", span.end))
    }
