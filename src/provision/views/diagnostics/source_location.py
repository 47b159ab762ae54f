"""The text that findings are about, and locations in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from provision.diagnostics import Diagnostic, Fix, Location, Severity, Span
from provision.errors import ProvisionError
from provision.sanitize import escape_line, redact
from provision.views.formatting import Style

COUNTED = {Severity.UNKNOWN: "unknown result"}
"""The words for counts of a severity, if they are not its label."""
SEVERITY_LABELS = {
    Severity.ERROR: ("error", Style.ERROR),
    Severity.WARNING: ("warning", Style.WARNING),
    Severity.UNKNOWN: ("unknown", Style.WARNING),
    Severity.INFO: ("note", Style.INFO),
}


class FindingSource(Protocol):
    """The text of findings: one YAML document of a spec file, and the files that it extends."""

    @property
    def files(self) -> Mapping[str, str]:
        """Shown name to decoded text."""
        ...

    @property
    def document(self) -> int:
        """0-based index of the YAML document."""
        ...

    def span(self, where: Location) -> Span:
        """Return the span of text at a location."""
        ...

    def apply_fixes(self, fixes: Sequence[Fix]) -> Mapping[str, str]:
        """Return the new text of each file that the fixes change."""
        ...


class SpecSource(FindingSource, Protocol):
    """The text of findings with its data, and the edits of fixes."""

    @property
    def data(self) -> dict[str, Any] | None:
        """The document's data; None when its text is too broken."""
        ...

    def text_changes(self, fix: Fix) -> tuple[tuple[Span, str], ...]:
        """Return the spans that a fix replaces with their new text; () if it does not apply."""
        ...


def format_location(span: Span) -> str:
    """Return `file:line:column` of the start of a span."""
    return f"{redact_line(span.file)}:{span.start.line}:{span.start.column}"


def redact_line(text: str) -> str:
    """Return foreign text as one harmless line."""
    return escape_line(redact(text))


def finding_lines(finding: Diagnostic) -> list[str]:
    """Return a finding's message, reason and help, each on its own line; not escaped."""
    labeled = (("", finding.message), ("why: ", finding.why), ("help: ", finding.help))
    return [label + text for label, text in labeled if text]


def error_lines(error: ProvisionError) -> list[str]:
    """Return the parts of an error, each on its own line; not escaped."""
    return [part for part in (error.what, error.why, error.hint) if part]
