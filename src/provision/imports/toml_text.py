"""Reads TOML, and finds where its tables, keys and strings are written."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.diagnostics import Span
from provision.errors import SourceError
from provision.imports.model import SourceText
from provision.source.nodes import to_text_file

MAX_DOTS_IN_LINE = 20_000
"""tomllib reads a dotted key in quadratic time; a line with 500 wheels has 4000 dots."""
_HEADER = re.compile(r"^[ \t]*\[\[?[ \t]*[\w\"'][^\]\n]*\]", re.MULTILINE)


class TomlText:
    """A parsed file with its text. tomllib reports no positions, so they are searched."""

    def __init__(self, path: Path, text: str) -> None:
        """Parse a file.

        Raises:
            SourceError: it is not valid TOML.
        """
        self.file = to_text_file(str(path), text)
        if any(line.count(".") > MAX_DOTS_IN_LINE for line in text.split("\n")):
            raise SourceError(f"{path} has a line that is too long", hint="split the line")
        try:
            self.data: Mapping[str, Any] = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, ValueError) as error:
            raise SourceError(
                f"{path} is not valid TOML",
                why=str(error)[:200],
                hint="correct the error and try again",
            ) from None
        self._ranges: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        headers = list(_HEADER.finditer(text))
        ends = [*(match.start() for match in headers[1:]), len(text)]
        for match, end in zip(headers, ends, strict=False):
            name = match.group().strip().strip("[] \t")
            parts = tuple(part.strip(" \t\"'") for part in name.split("."))
            self._ranges.setdefault(parts, []).append((match.end(), end))

    @property
    def texts(self) -> dict[str, SourceText]:
        """The text by name."""
        return {self.file.name: SourceText(self.file.name, self.file.content, self.file.name)}

    def table(self, *names: str) -> Mapping[str, Any]:
        """Return the table at a path, {} if there is none."""
        value: Any = self.data
        for name in names:
            value = as_table(value).get(name)
        return as_table(value)

    def ranges(self, *names: str) -> list[tuple[int, int]]:
        """Return the ranges of the text in which tables with this path are written."""
        if not names:
            return [(0, len(self.file.content))]
        return self._ranges.get(names, [])

    def key(self, names: tuple[str, ...], key: str) -> Span:
        """Return the line of a key of a table, else the nearest text that is known."""
        pattern = re.compile(rf"^[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*[=.][^\n]*", re.MULTILINE)
        for start, end in self.ranges(*names) or self.ranges():
            if match := pattern.search(self.file.content, start, end):
                text = match.group()
                return self.file.span(
                    match.end() - len(text.lstrip()), match.start() + len(text.rstrip())
                )
        return self.key(names[:-1], names[-1]) if names else self.first_line()

    def string(self, names: tuple[str, ...], key: str, value: str) -> Span:
        """Return a string in the array at a key of a table, else the line of the key."""
        content = self.file.content
        start = self.key(names, key).start.offset
        for quoted in (f'"{value}"', f"'{value}'", '"' + value.replace('"', '\\"') + '"'):
            offset = content.find(quoted, start)
            if offset >= 0:
                return self.file.span(offset + 1, offset + len(quoted) - 1)
        return self.key(names, key)

    def first_line(self) -> Span:
        """Return the first line."""
        return self.file.span(0, self.file.end_of_line(0))


def as_table(value: Any) -> Mapping[str, Any]:
    """Return a value if it is a table, else {}."""
    return value if isinstance(value, dict) else {}


def as_tables(value: Any) -> list[Mapping[str, Any]]:
    """Return the tables of an array."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def as_texts(value: Any) -> list[str]:
    """Return the strings of an array."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


def as_text(value: Any) -> str:
    """Return a value if it is a string, else ""."""
    return value if isinstance(value, str) else ""
