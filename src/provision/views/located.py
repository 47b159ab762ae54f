"""The text that findings are about, and how a place in it and foreign words are written on one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from provision.diagnostics import Fix, Span, Where
from provision.safe import redact, safe_line


class SourceText(Protocol):
    """The text that findings are about: where a `Where` stands, every file by its shown name, and each changed file's text after fixes."""

    @property
    def files(self) -> Mapping[str, str]:
        """Shown name to decoded text."""
        ...

    def span(self, where: Where) -> Span:
        """Return the stretch of text that `where` means."""
        ...

    def edited(self, fixes: Sequence[Fix]) -> Mapping[str, str]:
        """Return the new text per file."""
        ...


def at(span: Span) -> str:
    """Return `file:line:column` of where a stretch begins."""
    return f"{one_line(span.file)}:{span.start.line}:{span.start.column}"


def one_line(text: str) -> str:
    """Return foreign text as one harmless line."""
    return safe_line(redact(text))
