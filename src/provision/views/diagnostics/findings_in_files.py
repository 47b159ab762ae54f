"""What the formats for CI services have in common: findings with their files, in one order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from provision.diagnostics import Diagnostic, Severity, Span
from provision.errors import ProvisionError
from provision.sanitize import redact
from provision.target_changes import ChangedTarget
from provision.views.diagnostics.repository_paths import Repository
from provision.views.diagnostics.source_location import SpecSource, error_lines, finding_lines
from provision.views.diagnostics.text import sort_findings
from provision.views.formatting import to_safe_text


class CheckedFiles(NamedTuple):
    """All that a format shows.

    Attributes:
        documents: the findings of each document, with its text.
        unread: the files that could not be read, and the errors.
        repository: the root to which paths are relative.
        fail_on: for each document, the lowest severity that fails.
        hidden: the number of findings that were accepted or are not new.
        fixed: the number of findings that a change removes.
        targets: the targets that a change makes cost another price, or replaces.
    """

    documents: Sequence[tuple[Sequence[Diagnostic], SpecSource]]
    unread: Sequence[tuple[str, ProvisionError]]
    repository: Repository
    fail_on: Sequence[Severity]
    hidden: int = 0
    fixed: int = 0
    targets: Sequence[ChangedTarget] = ()

    def located(self) -> Iterator[tuple[Diagnostic, Span, SpecSource]]:
        """Yield each finding with its span and its document, sorted within a document."""
        for findings, source in self.documents:
            for finding in sort_findings(findings, source):
                yield finding, source.span(finding.where), source

    def path(self, name: str) -> str:
        """Return a file's path from the root of the repository, else as it was named."""
        return to_safe_text(redact(self.repository.relative_path(name) or name))


def describe_finding(finding: Diagnostic) -> str:
    """Return a finding's message, reason and help as harmless lines."""
    return to_safe_text(redact("\n".join(finding_lines(finding))))


def describe_error(error: ProvisionError) -> str:
    """Return an error's parts as harmless lines."""
    return to_safe_text(redact("\n".join(error_lines(error))))
