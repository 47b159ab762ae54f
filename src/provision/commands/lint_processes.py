"""The results of checked files as other processes send them, and the way back to documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision import source
from provision.commands.lint_files import SkippedFile
from provision.commands.shared.load import CheckedDocument
from provision.diagnostics import Diagnostic, SuppressedFinding
from provision.errors import SourceError
from provision.source import Source
from provision.source.nodes import TextFile, to_text_file

if TYPE_CHECKING:
    from provision.commands.shared.configuration import Configuration
    from provision.effects.system import Reader


class SentDocument(NamedTuple):
    """A checked document as another process sends it.

    Attributes:
        names: the display names of its file and of the files that it extends.
        digest: the texts of these files; equal in processes that were forked from one.
        diagnostics: its findings.
        suppressed: the findings that were accepted.
    """

    names: tuple[str, ...]
    digest: int
    diagnostics: tuple[Diagnostic, ...]
    suppressed: tuple[SuppressedFinding, ...]


class SentFile(NamedTuple):
    """A checked file as another process sends it."""

    documents: tuple[SentDocument, ...]


def to_sent(outcome: object) -> SentFile | SkippedFile | None:
    """Return what is sent of a file: not its trees, which are large, and not its errors."""
    if isinstance(outcome, SkippedFile):
        return outcome
    if not isinstance(outcome, tuple):
        return None
    return SentFile(
        tuple(
            SentDocument(
                tuple(document.source.texts),
                _digest(document.source),
                document.diagnostics,
                document.suppressed,
            )
            for document in outcome
        )
    )


def from_sent(
    path: Path, sent: SentFile, root: Path, configuration: Configuration, reader: Reader
) -> tuple[CheckedDocument, ...] | None:
    """Return the documents of a file; None if the file has changed in the meantime.

    The file is read again only if it has findings, which are shown with its text. The documents
    have no `spec`.
    """
    if any(document.diagnostics or document.suppressed for document in sent.documents):
        try:
            sources = source.read_spec_file(path, reader, root)
        except SourceError:
            return None
        if [*map(_digest, sources)] != [document.digest for document in sent.documents]:
            return None
    else:
        sources = tuple(
            Source(path, str(path), root, index, _without_text(document.names), None, (), None)
            for index, document in enumerate(sent.documents)
        )
    documents = []
    for text, (_, _, diagnostics, suppressed) in zip(sources, sent.documents, strict=True):
        text.check_fixes(finding.fix for finding in diagnostics if finding.fix is not None)
        documents.append(CheckedDocument(text, None, diagnostics, suppressed, configuration))
    return tuple(documents)


def _without_text(names: tuple[str, ...]) -> dict[str, TextFile]:
    return {name: to_text_file(name, "") for name in names}


def _digest(document: Source) -> int:
    return hash(tuple(document.files.items()))
