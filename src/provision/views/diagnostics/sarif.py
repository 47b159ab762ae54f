"""Findings as SARIF 2.1.0 (OASIS, errata 01), as GitHub code scanning and editors read them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from provision import __version__
from provision.diagnostics import (
    Applicability,
    Diagnostic,
    Location,
    RouteLocation,
    RoutePart,
    Severity,
    Span,
    SuppressedFinding,
    SuppressionKind,
)
from provision.errors import ProvisionError
from provision.sanitize import REDACTED, redact
from provision.views.diagnostics.fingerprints import fingerprint, stable_path
from provision.views.diagnostics.repository_paths import URI_BASE_ID, Repository
from provision.views.diagnostics.secret_filter import may_contain_secret
from provision.views.diagnostics.source_location import SpecSource, error_lines, finding_lines
from provision.views.diagnostics.text import sort_findings
from provision.views.formatting import to_safe_text
from provision.views.rule_page import RulePage, render_text

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
INTERNAL_ERROR_PREFIX = "BUG"
_FINGERPRINT = "provisionPath/v1"
_WIDTH = 100
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.UNKNOWN: "note",
    Severity.INFO: "note",
}
_SUPPRESSIONS = {
    SuppressionKind.COMMENT: "inSource",
    SuppressionKind.CONFIGURATION: "external",
    SuppressionKind.BASELINE: "external",
}
"""The kinds of SARIF 2.1.0, section 3.35.2: in the file, or anywhere else."""
_SECURITY = {Severity.ERROR: "8.0", Severity.WARNING: "5.0"}
"""GitHub shows 7.0 to 8.9 as high and 4.0 to 6.9 as medium (docs.github.com, SARIF support,
security-severity).
"""


def to_sarif_log(
    documents: Sequence[tuple[Sequence[Diagnostic], SpecSource]],
    unread: Sequence[tuple[str, ProvisionError]],
    pages: Sequence[RulePage],
    repository: Repository,
    exit_code: int,
    suppressed: Sequence[tuple[Sequence[SuppressedFinding], SpecSource]] = (),
    *,
    is_compared: bool = False,
) -> dict[str, Any]:
    """Return one run over all documents; `suppressed` are the accepted findings of each.

    If the findings were compared with those of another revision, each result has its state.

    Results are written even when there are none, for old alerts close only then. Files that
    could not be read and our own faults are notifications.
    """
    rules = [page for page in pages if not page.id.startswith(INTERNAL_ERROR_PREFIX)]
    faults = [page for page in pages if page.id.startswith(INTERNAL_ERROR_PREFIX)]
    findings = [
        (finding, source)
        for diagnostics, source in documents
        for finding in sort_findings(diagnostics, source)
    ]
    states = {
        (id(source), item.finding): _result_state(item, source, repository)
        for items, source in suppressed
        for item in items
    }
    state = {"baselineState": "new"} if is_compared else {}
    findings += [(item.finding, source) for items, source in suppressed for item in items]
    notes = list(_notifications(findings, unread, repository))
    files = dict.fromkeys(
        (*(name for _, source in documents for name in source.files), *(name for name, _ in unread))
    )
    run = {
        "tool": {
            "driver": {
                "name": "provision",
                "version": __version__,
                "rules": [_rule(page) for page in rules],
                "notifications": [_rule(page) for page in faults],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not notes,
                "exitCode": exit_code,
                "toolExecutionNotifications": notes,
            }
        ],
        "originalUriBaseIds": {
            URI_BASE_ID: {"description": {"text": "The root of the repository."}}
        },
        "artifacts": [{"location": repository.sarif_location(name)} for name in files],
        "columnKind": "unicodeCodePoints",
        "redactionTokens": [REDACTED],
        "results": list(_results(findings, defaultdict(lambda: state, states), rules, repository)),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(page: RulePage) -> dict[str, Any]:
    area = page.id[:3]
    properties: dict[str, Any] = {"precision": "high", "tags": [area]}
    if area == "SEC":
        properties = {
            **properties,
            "tags": [area, "security"],
            "security-severity": _SECURITY.get(page.severity, "3.0"),
        }
    return {
        "id": page.id,
        "name": "".join(word.capitalize() for word in page.name.split("-")),
        "shortDescription": {"text": page.summary},
        "fullDescription": {"text": page.description},
        "help": {"text": render_text(page, False, _WIDTH), "markdown": page.markdown},
        "defaultConfiguration": {"level": _LEVELS[page.severity]},
        "properties": properties,
    }


def _result_state(
    item: SuppressedFinding, source: SpecSource, repository: Repository
) -> dict[str, Any]:
    """Return the fields of a result that say who accepted it, or that it is not new."""
    if item.kind is SuppressionKind.BASE:
        return {"baselineState": "unchanged"}
    suppression: dict[str, Any] = {"kind": _SUPPRESSIONS[item.kind]}
    if item.reason:
        suppression["justification"] = to_safe_text(redact(item.reason))
    if item.where is not None:
        suppression["location"] = _location(item.where, source, repository, private=False)
    return {"suppressions": [suppression]}


def _results(
    findings: Sequence[tuple[Diagnostic, SpecSource]],
    states: Mapping[tuple[int, Diagnostic], dict[str, Any]],
    rules: Sequence[RulePage],
    repository: Repository,
) -> Iterator[dict[str, Any]]:
    indexes = {page.id: index for index, page in enumerate(rules)}
    seen: Counter[tuple[str, str]] = Counter()
    for finding, source in findings:
        if finding.id.startswith(INTERNAL_ERROR_PREFIX):
            continue
        locate = partial(
            _location, source=source, repository=repository, private=may_contain_secret(finding)
        )
        file, mark = source.span(finding.where).file, fingerprint(finding, source)
        seen[file, mark] += 1
        result = {
            "ruleId": finding.id,
            "ruleIndex": indexes[finding.id],
            "level": _LEVELS[finding.severity],
            "message": _message(finding),
            "locations": [locate(finding.where)],
            "partialFingerprints": {_FINGERPRINT: f"{mark}:{seen[file, mark]}"},
            "properties": {"severity": finding.severity.value, "document": source.document},
        }
        if finding.related:
            result["relatedLocations"] = [
                {**locate(related.where), "message": _text(related.text)}
                for related in finding.related
            ]
        result.update(states[id(source), finding])
        if fixes := _fixes(finding, source, repository):
            result["fixes"] = fixes
        yield result


def _message(finding: Diagnostic) -> dict[str, str]:
    source = [f"source: {finding.source}"] if finding.source else []
    return _text("\n".join([*finding_lines(finding), *source]))


def _text(text: str) -> dict[str, str]:
    """Return foreign text as text alone: `[text](target)` would be a link (section 3.11.6)."""
    return {"text": to_safe_text(text).replace("](", "] (")}


def _location(
    where: Location, source: SpecSource, repository: Repository, *, private: bool
) -> dict[str, Any]:
    span = source.span(where)
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": repository.sarif_location(span.file),
            "region": _region(span),
        }
    }
    if isinstance(where, RouteLocation) and where.route:
        path = stable_path(where.route, source.data, private=private)
        location["logicalLocations"] = [
            {
                "fullyQualifiedName": path,
                "kind": "property" if where.part is RoutePart.KEY else "value",
            }
        ]
    return location


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.start.line,
        "startColumn": span.start.column,
        "endLine": span.end.line,
        "endColumn": span.end.column,
        "charOffset": span.start.offset,
        "charLength": span.end.offset - span.start.offset,
    }


def _fixes(finding: Diagnostic, source: SpecSource, repository: Repository) -> list[dict[str, Any]]:
    """Return the fix that a tool can make, unless it would repeat a secret."""
    fix = finding.fix
    if fix is None or fix.applicability is Applicability.MANUAL or may_contain_secret(finding):
        return []
    changes = source.text_changes(fix)
    if not changes or any(redact(new) != new for _, new in changes):
        return []
    change = {
        "artifactLocation": repository.sarif_location(changes[0][0].file),
        "replacements": [
            {"deletedRegion": _region(span), "insertedContent": {"text": new}}
            for span, new in changes
        ],
    }
    return [
        {
            "description": _text(fix.title),
            "artifactChanges": [change],
            "properties": {"applicability": fix.applicability.value},
        }
    ]


def _notifications(
    findings: Sequence[tuple[Diagnostic, SpecSource]],
    unread: Sequence[tuple[str, ProvisionError]],
    repository: Repository,
) -> Iterator[dict[str, Any]]:
    for name, error in unread:
        yield _unreadable_file(name, error, repository)
    for finding, source in findings:
        if finding.id.startswith(INTERNAL_ERROR_PREFIX):
            yield _internal_error(finding, source, repository)


def _unreadable_file(name: str, error: ProvisionError, repository: Repository) -> dict[str, Any]:
    return {
        "level": "error",
        "message": _text("\n".join(error_lines(error))),
        "locations": [{"physicalLocation": {"artifactLocation": repository.sarif_location(name)}}],
    }


def _internal_error(
    finding: Diagnostic, source: SpecSource, repository: Repository
) -> dict[str, Any]:
    return {
        "level": "error",
        "descriptor": {"id": finding.id},
        "message": _message(finding),
        "locations": [_location(finding.where, source, repository, private=True)],
    }
