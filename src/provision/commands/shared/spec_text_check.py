"""Checks a spec that is a text in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from provision.commands.shared.load import CheckedDocument, check_single_document
from provision.facts import Facts

if TYPE_CHECKING:
    from provision.effects.system import Reader


class TextReader:
    """A reader of one file, whose text is in memory."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, _path: Path, _limit: int) -> bytes:
        """Return the text."""
        return self._text.encode()

    def exists(self, _path: Path) -> bool:
        """Return False: the text is in no project."""
        return False


def read_text_as_file(text: str) -> Reader:
    """Return a reader that has a text in place of every file."""
    return cast("Reader", TextReader(text))


def check_spec_text(path: Path, text: str, facts: Facts) -> CheckedDocument:
    """Return the spec in a text with its findings; `path` is its name in them."""
    return check_single_document(path, read_text_as_file(text), facts)
