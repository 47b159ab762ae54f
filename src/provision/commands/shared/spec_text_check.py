"""Checks a spec that is a text in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from provision.commands.shared.load import CheckedDocument, check_single_document
from provision.facts import Facts

if TYPE_CHECKING:
    from provision.effects.system import Reader


class TextReader:
    """A reader of one file, whose text is in memory, and of the others of its project, if any."""

    def __init__(self, text: str, path: Path | None = None, others: Reader | None = None) -> None:
        self._text, self._path, self._others = text, path, others

    def read(self, path: Path, limit: int) -> bytes:
        """Return the text, or the content of another file."""
        if self._others is None or path == self._path:
            return self._text.encode()
        return self._others.read(path, limit)

    def exists(self, path: Path) -> bool:
        """Return whether another file exists: without a project, none does."""
        return self._others is not None and self._others.exists(path)


def read_text_as_file(text: str) -> Reader:
    """Return a reader that has a text in place of every file."""
    return cast("Reader", TextReader(text))


def check_spec_text(
    path: Path, text: str, facts: Facts, others: Reader | None = None
) -> CheckedDocument:
    """Return the spec in a text with its findings.

    Args:
        path: Its name in the findings.
        text: The spec.
        facts: The tables.
        others: Reads the files that it names; None for a spec in no project.
    """
    return check_single_document(path, cast("Reader", TextReader(text, path, others)), facts)
