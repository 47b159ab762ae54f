"""Places in the text of findings, and external text, on one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from provision.diagnostics import Fix, Location, Span
from provision.sanitize import escape_line, redact


class SourceText(Protocol):
    """The text of findings: spans of their places, files by name, and files after fixes."""

    @property
    def files(self) -> Mapping[str, str]:
        """Shown name to decoded text."""
        ...

    def span(self, where: Location) -> Span:
        """Return the stretch of text that `where` means."""
        ...

    def apply_fixes(self, fixes: Sequence[Fix]) -> Mapping[str, str]:
        """Return the new text per file."""
        ...


def format_location(span: Span) -> str:
    """Return `file:line:column` of where a stretch begins."""
    return f"{redact_line(span.file)}:{span.start.line}:{span.start.column}"


def redact_line(text: str) -> str:
    """Return foreign text as one harmless line."""
    return escape_line(redact(text))
