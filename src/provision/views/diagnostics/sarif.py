"""Findings as SARIF 2.1.0 (OASIS, errata 01), as GitHub code scanning and editors read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, assert_never

from provision import __version__
from provision.diagnostics import (
    Applicability,
    Diagnostic,
    Fix,
    Location,
    RelatedLocation,
    RouteLocation,
    RoutePart,
    Severity,
    Span,
)
from provision.errors import ProvisionError
from provision.sanitize import REDACTED, escape_control, redact
from provision.views.diagnostics.fingerprints import SpecDocument, fingerprint, stable_path
from provision.views.diagnostics.repository_paths import URI_BASE_ID, Repository
from provision.views.diagnostics.secret_filter import may_contain_secret
from provision.views.diagnostics.source_location import SourceText
from provision.views.diagnostics.text import sort_findings
from provision.views.rule_page import RulePage, render_text

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
INTERNAL_ERROR_PREFIX = "BUG"
_FINGERPRINT = "provisionPath/v1"
_WIDTH = 100
_SECURITY = {Severity.ERROR: "8.0", Severity.WARNING: "5.0"}
"""GitHub shows 7.0 to 8.9 as high and 4.0 to 6.9 as medium (docs.github.com, SARIF support,
security-severity).
"""


class SarifSource(SpecDocument, SourceText, Protocol):
    """One document of a spec file: its data, its text, and the edits of fixes."""

    def text_changes(self, fix: Fix) -> tuple[tuple[Span, str], ...]:
        """Return the spans that a fix replaces with their new text; () if it does not apply."""
        ...


def to_sarif_log(
    documents: Sequence[tuple[Sequence[Diagnostic], SarifSource]],
    unread: Sequence[tuple[str, ProvisionError]],
    pages: Sequence[RulePage],
    repository: Repository,
    exit_code: int,
) -> dict[str, Any]:
    """Return one run over all documents.

    Results are written even when there are none, for old alerts close only then. Files that
    could not be read and our own faults are notifications.
    """
    rules = [page for page in pages if not page.id.startswith(INTERNAL_ERROR_PREFIX)]
    found = [
        (one, source)
        for diagnostics, source in documents
        for one in sort_findings(diagnostics, source)
    ]
    faults = [(one, source) for one, source in found if one.id.startswith(INTERNAL_ERROR_PREFIX)]
    notes = [
        *(_unreadable_file(name, error, repository) for name, error in unread),
        *(_internal_error(one, source, repository) for one, source in faults),
    ]
    files = dict.fromkeys(
        (*(name for _, source in documents for name in source.files), *(name for name, _ in unread))
    )
    run = {
        "tool": {
            "driver": _driver(
                rules, [page for page in pages if page.id.startswith(INTERNAL_ERROR_PREFIX)]
            )
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
        "results": list(
            _results([pair for pair in found if pair not in faults], rules, repository)
        ),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver(rules: Sequence[RulePage], faults: Sequence[RulePage]) -> dict[str, Any]:
    return {
        "name": "provision",
        "version": __version__,
        "rules": [_rule(page) for page in rules],
        "notifications": [_rule(page) for page in faults],
    }


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
        "defaultConfiguration": {"level": _level(page.severity)},
        "properties": properties,
    }


def _results(
    found: Sequence[tuple[Diagnostic, SarifSource]],
    rules: Sequence[RulePage],
    repository: Repository,
) -> Iterator[dict[str, Any]]:
    places = {page.id: index for index, page in enumerate(rules)}
    seen: Counter[tuple[str, str]] = Counter()
    for finding, source in found:
        mark = fingerprint(finding, source)
        seen[source.span(finding.where).file, mark] += 1
        result = {
            "ruleId": finding.id,
            "ruleIndex": places[finding.id],
            "level": _level(finding.severity),
            "message": {"text": _message(finding)},
            "locations": [
                _location(finding.where, source, repository, private=may_contain_secret(finding))
            ],
            "partialFingerprints": {
                _FINGERPRINT: f"{mark}:{seen[source.span(finding.where).file, mark]}"
            },
            "properties": {"severity": finding.severity.value, "document": source.document},
        }
        if finding.related:
            result["relatedLocations"] = [
                _related(one, source, repository, private=may_contain_secret(finding))
                for one in finding.related
            ]
        if fixes := _fixes(finding, source, repository):
            result["fixes"] = fixes
        yield result


def _message(finding: Diagnostic) -> str:
    said = (
        ("", finding.message),
        ("why: ", finding.why),
        ("help: ", finding.help),
        ("source: ", finding.source),
    )
    return "\n".join(label + _plain(words) for label, words in said if words)


def _plain(words: str) -> str:
    """Foreign text as text alone: `[text](target)` would be a link (section 3.11.6)."""
    return escape_control(redact(words)).replace("](", "] (")


def _location(
    where: Location, source: SarifSource, repository: Repository, *, private: bool
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


def _related(
    related: RelatedLocation, source: SarifSource, repository: Repository, *, private: bool
) -> dict[str, Any]:
    return {
        **_location(related.where, source, repository, private=private),
        "message": {"text": _plain(related.text)},
    }


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.start.line,
        "startColumn": span.start.column,
        "endLine": span.end.line,
        "endColumn": span.end.column,
        "charOffset": span.start.offset,
        "charLength": span.end.offset - span.start.offset,
    }


def _fixes(
    finding: Diagnostic, source: SarifSource, repository: Repository
) -> list[dict[str, Any]]:
    """Fixes that a tool can make. One that would repeat a secret is left out."""
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
            "description": {"text": _plain(fix.title)},
            "artifactChanges": [change],
            "properties": {"applicability": fix.applicability.value},
        }
    ]


def _unreadable_file(name: str, error: ProvisionError, repository: Repository) -> dict[str, Any]:
    words = "\n".join(_plain(part) for part in (error.what, error.why, error.hint) if part)
    return {
        "level": "error",
        "message": {"text": words},
        "locations": [{"physicalLocation": {"artifactLocation": repository.sarif_location(name)}}],
    }


def _internal_error(
    finding: Diagnostic, source: SarifSource, repository: Repository
) -> dict[str, Any]:
    location = _location(finding.where, source, repository, private=True)
    return {
        "level": "error",
        "descriptor": {"id": finding.id},
        "message": {"text": _message(finding)},
        "locations": [location],
    }


def _level(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "error"
        case Severity.WARNING:
            return "warning"
        case Severity.UNKNOWN | Severity.INFO:
            return "note"
        case _:
            assert_never(severity)
