"""Reads the cells and the metadata of a notebook, with the position of every source line."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from provision.diagnostics import Span
from provision.errors import SourceError
from provision.imports.json_positions import find_strings
from provision.imports.model import SourceText
from provision.source.nodes import TextFile, to_text_file

MAX_NOTEBOOK_BYTES = 64 << 20
"""Bytes; the outputs of a notebook contain images (our choice)."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonString(NamedTuple):
    """A string of a cell's source in the text of the notebook.

    Args:
        start: Offset of its opening quote.
        end: Offset after its closing quote.
        offset: Offset of its first character in the source of the cell.
    """

    start: int
    end: int
    offset: int


_RENDERED = re.compile(r"(?:# @title .*\n)?# Written by `provision render`")
"""The first lines of a code cell of `provision render`."""


class NotebookCell(NamedTuple):
    """A cell.

    Args:
        number: Position in the notebook, from 1, text cells included.
        kind: "code", "markdown" or "raw".
        text: The source with its name, such as "train.ipynb:cell 3"; half surrogate pairs, which
            no file can contain, are U+FFFD.
        strings: The JSON strings that the source is made of, in their order.
        surrogates: Offsets of the replaced characters in the source.
        is_malformed: True if its JSON is not that of a cell; its source then counts as empty.
    """

    number: int
    kind: str
    text: SourceText
    strings: tuple[JsonString, ...] = ()
    surrogates: tuple[int, ...] = ()
    is_malformed: bool = False

    @property
    def name(self) -> str:
        """The name in spans and output."""
        return self.text.name

    @property
    def source(self) -> str:
        """The decoded source."""
        return self.text.content

    @property
    def is_rendered(self) -> bool:
        """True if `provision render` wrote the cell."""
        return _RENDERED.match(self.source) is not None

    def file(self) -> TextFile:
        """Return the source as a text with positions."""
        return to_text_file(self.text.name, self.text.content)


class NotebookJson(NamedTuple):
    """The JSON document of a notebook: its text, its metadata and its cells."""

    name: str
    text: str
    metadata: Mapping[str, Any]
    cells: tuple[NotebookCell, ...]
    positions: Mapping[tuple[str, ...], tuple[int, int]]
    starts: tuple[int, ...]

    def metadata_span(self, *route: str) -> Span:
        """Return the span of a scalar of the metadata, the start of the file if there is none."""
        start, end = self.positions.get(route, (0, 0))
        return TextFile(self.name, self.text, bom=False, starts=self.starts).span(start, end)


def read_notebook_json(path: Path, raw: bytes | str) -> NotebookJson:
    """Return the cells and the metadata of a notebook.

    Raises:
        SourceError: the file is too large, not UTF-8, not JSON, or not a notebook of version 4.
    """
    name = str(path)
    text = raw if isinstance(raw, str) else _decode(name, raw)
    if len(text) > MAX_NOTEBOOK_BYTES:
        raise _too_large(name)
    document = _parse_json(name, text)
    cells = _check_document(name, document)
    strings, positions = _find_positions(text)
    starts = to_text_file(name, text).starts
    read = tuple(
        _read_cell(name, number, cell, strings.get(number - 1, ()), starts)
        for number, cell in enumerate(cells, start=1)
    )
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    return NotebookJson(name, text, metadata, read, positions, starts)


def _too_large(name: str) -> SourceError:
    return SourceError(
        f"{name} is larger than {MAX_NOTEBOOK_BYTES >> 20} MiB",
        why="it probably contains saved outputs such as images and tables",
        hint="clear the outputs and save the notebook again",
    )


def _decode(name: str, raw: bytes) -> str:
    if len(raw) > MAX_NOTEBOOK_BYTES:
        raise _too_large(name)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"{name}:{line}: byte 0x{raw[error.start]:02x} is not valid UTF-8",
            why="notebooks must be UTF-8",
            hint="open the notebook in Jupyter and save it again",
        ) from None


def _parse_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        conflict = re.search(r"^(?:<{7}|={7}|>{7})", text, re.MULTILINE)
        hint = "open the notebook in Jupyter and save it again, or restore an earlier version"
        if conflict:
            hint = "the file contains merge conflict markers; resolve the conflict first"
        raise SourceError(
            f"{name}:{error.lineno}:{error.colno}: the notebook is not valid JSON",
            why=error.msg,
            hint=hint,
        ) from None
    except RecursionError:
        raise SourceError(
            f"{name} has too many levels of nesting",
            why="a valid notebook has fewer than 20 levels",
            hint="clear the outputs and save the notebook again",
        ) from None
    except ValueError as error:  # a number with more digits than Python converts
        raise SourceError(f"{name}: the notebook is not valid JSON", why=str(error)) from None


def _check_document(name: str, document: Any) -> list[Any]:
    """Return the cells of a document.

    Raises:
        SourceError: the document is not a notebook, or has the layout of version 3 or earlier.
    """
    if isinstance(document, dict) and isinstance(document.get("worksheets"), list):
        version = document.get("nbformat", 3)
        raise SourceError(
            f"{name} has notebook format {version}; expected 4",
            why="Jupyter has written format 4 since 2015",
            hint=f"convert it with `jupyter nbconvert --to notebook --inplace {name}`",
        )
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise SourceError(
            f"{name} is not a notebook",
            why='its JSON has no "cells" list',
            hint="use a notebook that Jupyter or Colab saved, such as train.ipynb",
        )
    return cells


def _read_cell(
    name: str,
    number: int,
    cell: Any,
    strings: tuple[tuple[int, int], ...],
    starts: tuple[int, ...],
) -> NotebookCell:
    """Return a cell; a source that is not of the expected type counts as empty."""
    kind = cell.get("cell_type") if isinstance(cell, dict) else None
    source = cell.get("source") if isinstance(cell, dict) else None
    parts = [source] if isinstance(source, str) else source
    is_malformed = not isinstance(kind, str)
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        parts, is_malformed = [], True
    content = "".join(parts)
    surrogates = tuple(match.start() for match in _SURROGATE.finditer(content))
    if surrogates:
        content = _SURROGATE.sub("\ufffd", content)
    offsets = accumulate(map(len, parts), initial=0)
    located = tuple(
        JsonString(start, end, offset)
        for (start, end), _, offset in zip(strings, parts, offsets, strict=False)
    )
    lines = _file_lines(content, located, starts)
    label = f"{name}:cell {number}"
    return NotebookCell(
        number,
        kind if isinstance(kind, str) else "raw",
        SourceText(label, content, name, lines),
        located,
        surrogates,
        is_malformed,
    )


def _file_lines(
    content: str, strings: tuple[JsonString, ...], starts: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the line of the file for each line of a cell, () if the cell has no source."""
    if not strings:
        return ()
    offsets = [string.offset for string in strings]
    line_starts = to_text_file("", content).starts
    if offsets == list(line_starts[: len(offsets)]) and len(line_starts) <= len(offsets) + 1:
        # A string for each line, as Jupyter saves it; after a last line break is an empty line.
        lines = [bisect_right(starts, string.start) for string in strings]
        return tuple(lines if len(lines) == len(line_starts) else [*lines, lines[-1]])
    lines = []
    for start in line_starts:
        string = strings[max(bisect_right(offsets, start) - 1, 0)]
        lines.append(bisect_right(starts, string.start))
    return tuple(lines)


_Positions = tuple[dict[int, tuple[tuple[int, int], ...]], dict[tuple[str, ...], tuple[int, int]]]


def _find_positions(text: str) -> _Positions:
    """Return the ranges of the sources' strings by cell, and of the metadata's strings by route."""
    strings: dict[int, list[tuple[int, int]]] = {}
    metadata: dict[tuple[str, ...], tuple[int, int]] = {}
    for route, start, end in find_strings(text, in_key="source"):
        if not route:
            continue
        if route[0] == "metadata":
            metadata.setdefault(tuple(str(part) for part in route[1:]), (start, end))
        elif len(route) in (3, 4) and route[0] == "cells" and route[2] == "source":
            strings.setdefault(int(route[1]), []).append((start, end))
    return {cell: tuple(ranges) for cell, ranges in strings.items()}, metadata
