"""Findings as GitHub workflow commands, and as Markdown for the summary of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from provision.diagnostics import Diagnostic, Severity, Span
from provision.errors import ProvisionError
from provision.sanitize import escape_control, redact
from provision.views.diagnostics.repository_paths import Repository
from provision.views.diagnostics.source_location import SourceText
from provision.views.diagnostics.text import sort_findings
from provision.views.markdown import escape_markdown

MAX_ANNOTATIONS = 10
"""Annotations of one kind that GitHub shows for a step (actions/toolkit, docs/problem-matchers.md,
Limitations).
"""
MAX_SUMMARY_BYTES = 1 << 20
"""Bytes; a step with a larger summary has none (docs.github.com, workflow commands, step isolation
and limits).
"""
_BYTES_FOR_OMISSION_NOTE = 200
_RANKS = list(Severity)
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
"""As the runner undoes it (actions/runner, ActionCommand.cs)."""


@dataclass(frozen=True, slots=True)
class Annotations:
    """Workflow commands for stdout, and Markdown for the step summary if some do not fit."""

    commands: str
    summary: str


@dataclass(frozen=True, slots=True)
class _LocatedFinding:
    finding: Diagnostic
    span: Span


def annotate(
    documents: Sequence[tuple[Sequence[Diagnostic], SourceText]],
    unread: Sequence[tuple[str, ProvisionError]],
    repository: Repository,
    *,
    summarized: bool,
) -> Annotations:
    """Return a command for each finding and each file that could not be read, the gravest first.

    With a summary, what GitHub would not show goes there: all beyond ten of a kind. Without,
    everything is a command, so that the log holds it.
    """
    found = [
        _LocatedFinding(one, source.span(one.where))
        for diagnostics, source in documents
        for one in sort_findings(diagnostics, source)
    ]
    found.sort(key=lambda one: _RANKS.index(one.finding.severity))
    taken = Counter({"error": len(unread)})
    shown: list[_LocatedFinding] = []
    rest: list[_LocatedFinding] = []
    for one in found:
        kind = _kind(one.finding.severity)
        taken[kind] += 1
        (rest if summarized and taken[kind] > MAX_ANNOTATIONS else shown).append(one)
    commands = [
        *(_unreadable_file(name, error, repository) for name, error in unread),
        *(_command(one, repository) for one in shown),
    ]
    return Annotations(
        "".join(line + "\n" for line in commands),
        _summary(rest, len(found), repository) if rest else "",
    )


def _command(one: _LocatedFinding, repository: Repository) -> str:
    finding, span = one.finding, one.span
    path = repository.relative_path(span.file)
    last = span.end.line - (span.end.column == 1 and span.end.line > span.start.line)
    properties = {"title": f"{finding.id} {finding.name}"}
    if path is not None:
        properties = {
            "file": path,
            "line": str(span.start.line),
            "endLine": str(last),
            **_columns(span),
            **properties,
        }
    said = (
        finding.message,
        f"why: {finding.why}" if finding.why else "",
        f"help: {finding.help}" if finding.help else "",
    )
    lead = "" if path is not None else f"{span.file}:{span.start.line}:{span.start.column}: "
    return _workflow_command(
        _kind(finding.severity), properties, lead + "\n".join(part for part in said if part)
    )


def _columns(span: Span) -> Mapping[str, str]:
    """Return the columns of a finding on one line.

    They have no meaning across lines (docs.github.com, check runs); GitHub includes the last one.
    """
    if span.end.line != span.start.line:
        return {}
    return {
        "col": str(span.start.column),
        "endColumn": str(max(span.start.column, span.end.column - 1)),
    }


def _unreadable_file(name: str, error: ProvisionError, repository: Repository) -> str:
    path = repository.relative_path(name)
    properties = {"file": path} if path is not None else {}
    return _workflow_command(
        "error",
        {**properties, "title": "provision could not read it"},
        "\n".join(part for part in (error.what, error.why, error.hint) if part),
    )


def _workflow_command(kind: str, properties: Mapping[str, str], data: str) -> str:
    listed = ",".join(
        f"{name}={escape_control(redact(value)).translate(_PROPERTY)}"
        for name, value in properties.items()
    )
    return f"::{kind} {listed}::{escape_control(redact(data)).translate(_DATA)}"


def _summary(rest: Sequence[_LocatedFinding], total: int, repository: Repository) -> str:
    head = (
        f"### provision lint: {total} findings, {len(rest)} of them beyond what GitHub "
        "annotates\n\n"
    )
    text, left = head, len(rest)
    for row in _rows(rest, repository):
        if len((text + row).encode()) > MAX_SUMMARY_BYTES - _BYTES_FOR_OMISSION_NOTE:
            break
        text += row
        left -= 1
    return text + (
        f"\n{left} more are not listed, for the summary would be too large.\n" if left else "\n"
    )


def _rows(rest: Sequence[_LocatedFinding], repository: Repository) -> Iterator[str]:
    for one in rest:
        finding, start = one.finding, one.span.start
        path = repository.relative_path(one.span.file) or one.span.file
        at = escape_markdown(f"{path}:{start.line}:{start.column}")
        label = f"**{finding.severity.value}** {escape_markdown(finding.id)}"
        yield f"- {label} {at}: {escape_markdown(finding.message)}\n"


def _kind(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "error"
        case Severity.WARNING:
            return "warning"
        case Severity.UNKNOWN | Severity.INFO:
            return "notice"
        case _:
            assert_never(severity)
