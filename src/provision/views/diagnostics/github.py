"""Findings as GitHub workflow commands, and as Markdown for the summary of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from provision.diagnostics import Diagnostic, Severity, Span
from provision.errors import ProvisionError
from provision.views.diagnostics.repository_paths import Repository
from provision.views.diagnostics.source_location import FindingSource, error_lines, finding_lines
from provision.views.diagnostics.text import sort_findings
from provision.views.formatting import to_safe_text
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
_KINDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.UNKNOWN: "notice",
    Severity.INFO: "notice",
}
_LocatedFinding = tuple[Diagnostic, Span]
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
"""Escapes that the runner decodes (actions/runner, ActionCommand.cs)."""


@dataclass(frozen=True, slots=True)
class Annotations:
    """Workflow commands for stdout, and Markdown for the step summary if some do not fit."""

    commands: str
    summary: str


def annotate(
    documents: Sequence[tuple[Sequence[Diagnostic], FindingSource]],
    unread: Sequence[tuple[str, ProvisionError]],
    repository: Repository,
    *,
    summarized: bool,
) -> Annotations:
    """Return a command for each finding and each file that could not be read, the gravest first.

    With a summary, what GitHub would not show goes there: all beyond ten of a kind. Without,
    everything is a command, so that the log has it.
    """
    located = [
        (finding, source.span(finding.where))
        for diagnostics, source in documents
        for finding in sort_findings(diagnostics, source)
    ]
    located.sort(key=lambda pair: _RANKS.index(pair[0].severity))
    counts = Counter({"error": len(unread)})
    commands = [_unreadable_file(name, error, repository) for name, error in unread]
    rest: list[_LocatedFinding] = []
    for finding, span in located:
        kind = _KINDS[finding.severity]
        counts[kind] += 1
        if summarized and counts[kind] > MAX_ANNOTATIONS:
            rest.append((finding, span))
        else:
            commands.append(_command(finding, span, repository))
    return Annotations(
        "".join(line + "\n" for line in commands),
        _summary(rest, len(located), repository) if rest else "",
    )


def _command(finding: Diagnostic, span: Span, repository: Repository) -> str:
    properties, prefix = {}, ""
    path = repository.relative_path(span.file)
    if path is None:
        prefix = f"{span.file}:{span.start.line}:{span.start.column}: "
    else:
        last = span.end.line - (span.end.column == 1 and span.end.line > span.start.line)
        lines = {"line": str(span.start.line), "endLine": str(last)}
        properties = {"file": path, **lines, **_columns(span)}
    properties["title"] = f"{finding.id} {finding.name}"
    text = "\n".join(finding_lines(finding))
    return _workflow_command(_KINDS[finding.severity], properties, prefix + text)


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
    properties["title"] = "unreadable file"
    return _workflow_command("error", properties, "\n".join(error_lines(error)))


def _workflow_command(kind: str, properties: Mapping[str, str], text: str) -> str:
    listed = ",".join(
        f"{name}={to_safe_text(value).translate(_PROPERTY)}" for name, value in properties.items()
    )
    return f"::{kind} {listed}::{to_safe_text(text).translate(_DATA)}"


def _summary(rest: Sequence[_LocatedFinding], total: int, repository: Repository) -> str:
    text = f"### provision: {total} findings; GitHub does not annotate these {len(rest)}\n\n"
    for number, (finding, span) in enumerate(rest):
        path = repository.relative_path(span.file) or span.file
        location = escape_markdown(f"{path}:{span.start.line}:{span.start.column}")
        label = f"**{finding.severity.value}** {escape_markdown(finding.id)}"
        row = f"- {label} {location}: {escape_markdown(finding.message)}\n"
        if len((text + row).encode()) > MAX_SUMMARY_BYTES - _BYTES_FOR_OMISSION_NOTE:
            left = len(rest) - number
            return f"{text}\n{left} more are not listed, because the summary would be too large.\n"
        text += row
    return text + "\n"
