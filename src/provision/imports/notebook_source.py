"""Locations and edits of findings in the cells of a notebook, and in its file.

A fix changes characters of a cell's source only: the rest of the JSON text keeps its bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from provision.diagnostics import (
    Diagnostic,
    Edit,
    Fix,
    Location,
    RelatedLocation,
    Replace,
    Span,
)
from provision.imports.notebook import JsonString, NotebookCell, NotebookFile
from provision.source.nodes import TextFile, to_text_file

_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]",
    re.DOTALL,
)
"""A character in a JSON string; a surrogate pair is one."""
_Change = tuple[int, int, str]
"""A range of a text by offsets, and the text that replaces it."""


class NotebookSource:
    """The text of findings about a notebook: each cell is a file of its own."""

    document = 0
    data: dict[str, Any] | None = None

    def __init__(self, notebook: NotebookFile) -> None:
        self.notebook = notebook

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The source of each cell by its name, in the order of the notebook."""
        return {cell.name: cell.source for cell in self.notebook.cells}

    def span(self, where: Location) -> Span:
        """Return the span of a location; a route is at the start of the first cell."""
        if isinstance(where, Span):
            return where
        for cell in self.notebook.cells[:1]:
            return cell.file().span(0, 0)
        return self.whole.span(0, 0)

    def apply_fixes(self, fixes: Sequence[Fix]) -> Mapping[str, str]:
        """Return the new source of each cell that the fixes change."""
        changes: dict[str, list[_Change]] = {}
        for span, text, _ in self._accepted(fixes):
            change = span.start.offset, span.end.offset, text
            changes.setdefault(span.file, []).append(change)
        return {name: _apply(self.files[name], found) for name, found in changes.items()}

    def text_changes(self, fix: Fix) -> tuple[tuple[Span, str], ...]:
        """Return the spans of cells that a fix replaces with their new text."""
        changes = self._accepted((fix,))
        return tuple((span, text) for span, text, _ in changes)

    def apply_to_file(self, fixes: Sequence[Fix]) -> str:
        """Return the JSON text of the notebook with the fixes; it is equal if none applies."""
        return _apply(self.notebook.text, [change for _, _, change in self._accepted(fixes)])

    def findings_in_file(
        self, findings: Iterable[Diagnostic]
    ) -> tuple[tuple[Diagnostic, ...], NotebookFileSource]:
        """Return findings with locations and fixes in the JSON text, and that text."""
        source = NotebookFileSource(self.whole)
        return tuple(map(self._in_file, findings)), source

    @cached_property
    def whole(self) -> TextFile:
        """The file as a text with positions."""
        return to_text_file(self.notebook.name, self.notebook.text)

    @cached_property
    def _cells(self) -> Mapping[str, NotebookCell]:
        return {cell.name: cell for cell in self.notebook.cells}

    def _in_file(self, finding: Diagnostic) -> Diagnostic:
        related = tuple(
            RelatedLocation(self.file_span(self.span(other.where)), other.text)
            for other in finding.related
        )
        fix = finding.fix
        if fix is not None:
            edits: list[Edit] = [
                Replace(self.whole.span(start, end), text)
                for _, _, (start, end, text) in self._accepted((fix,))
            ]
            fix = fix._replace(edits=tuple(edits)) if edits else None
        where = self.file_span(self.span(finding.where))
        return finding._replace(where=where, related=related, fix=fix)

    def file_span(self, span: Span) -> Span:
        """Return the span in the file; without positions of a cell, the start of the file."""
        cell = self._cells.get(span.file)
        strings = cell.strings if cell else ()
        if not strings:
            return self.whole.span(0, 0)
        start = self._file_offset(_string_at(strings, span.start.offset), span.start.offset)
        last = max(span.end.offset - 1, span.start.offset)
        end = self._file_offset(_string_at(strings, last), span.end.offset)
        return self.whole.span(start, max(start, end))

    def _accepted(self, fixes: Sequence[Fix]) -> list[tuple[Span, str, _Change]]:
        """Return the edits of the fixes that apply as a whole and do not overlap earlier ones."""
        accepted: list[tuple[Span, str, _Change]] = []
        for fix in fixes:
            changes = [self._file_change(edit) for edit in fix.edits]
            complete = [change for change in changes if change is not None]
            if len(complete) == len(changes) and not _overlap(accepted, complete):
                accepted += complete
        return accepted

    def _file_change(self, edit: Edit) -> tuple[Span, str, _Change] | None:
        """Return an edit with its range in the file; None unless it is in one JSON string."""
        if not isinstance(edit, Replace) or not isinstance(edit.where, Span):
            return None
        span = edit.where
        cell = self._cells.get(span.file)
        if cell is None or not cell.strings:
            return None
        start, end = span.start.offset, span.end.offset
        string = _string_at(cell.strings, start)
        if string != _string_at(cell.strings, max(end - 1, start)):
            return None
        literal = json.dumps(edit.text, ensure_ascii=self.notebook.text.isascii())[1:-1]
        change = self._file_offset(string, start), self._file_offset(string, end), literal
        return span, edit.text, change

    def _file_offset(self, string: JsonString, offset: int) -> int:
        """Return the offset in the file of a character of a cell's source."""
        count = offset - string.offset
        text, position = self.notebook.text, string.start + 1
        matches = _CHARACTER.finditer(text, position, string.end - 1)
        for match in islice(matches, count):
            position = match.end()
        return position


class NotebookFileSource:
    """The JSON text of a notebook as the text of findings."""

    document = 0
    data: dict[str, Any] | None = None

    def __init__(self, text: TextFile) -> None:
        self._text = text

    @property
    def files(self) -> Mapping[str, str]:
        """The text by the name of the file."""
        return {self._text.name: self._text.content}

    def span(self, where: Location) -> Span:
        """Return the span of a location; a route is at the start of the file."""
        return where if isinstance(where, Span) else self._text.span(0, 0)

    def apply_fixes(self, fixes: Sequence[Fix]) -> Mapping[str, str]:
        """Return the new text of the file."""
        changes = [
            (span.start.offset, span.end.offset, text)
            for fix in fixes
            for span, text in self.text_changes(fix)
        ]
        return {self._text.name: _apply(self._text.content, changes)} if changes else {}

    def text_changes(self, fix: Fix) -> tuple[tuple[Span, str], ...]:
        """Return the spans that a fix replaces with their new text."""
        return tuple(
            (edit.where, edit.text)
            for edit in fix.edits
            if isinstance(edit, Replace) and isinstance(edit.where, Span)
        )


def _string_at(strings: Sequence[JsonString], offset: int) -> JsonString:
    """Return the JSON string with a character of the source."""
    return max(
        (string for string in strings if string.offset <= offset),
        key=lambda string: (string.offset, string.start),
    )


def _overlap(
    accepted: Sequence[tuple[Span, str, _Change]], changes: Sequence[tuple[Span, str, _Change]]
) -> bool:
    return any(
        start <= other_end and other_start <= end
        for _, _, (start, end, _) in changes
        for _, _, (other_start, other_end, _) in accepted
    )


def _apply(text: str, changes: Iterable[_Change]) -> str:
    parts, position = list[str](), 0
    for start, end, new in sorted(changes):
        parts += text[position:start], new
        position = end
    return "".join((*parts, text[position:]))
