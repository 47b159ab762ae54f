"""Lookup of fact rows by a key that a person types, across all tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.facts.evidence import Evidence
from provision.facts.fact_tables import (
    EVIDENCE_FIELDS,
    MALFORMED,
    damaged_tables_error,
    expand_rows,
    read_compiled,
)
from provision.facts.lazy_tables import LAZY_TABLES_FOLDER
from provision.facts.tables_in_use import COMPILED_NAME
from provision.facts.versions import parse_version

_TABLE_ALIASES = {
    "torch": ("torch", "builds"),
    "cuda": ("cuda.toolkits",),
    "toolkit": ("cuda.toolkits",),
    "driver": ("cuda.drivers",),
    "cc": ("cuda.capabilities",),
    "gpu": ("gpus",),
    "card": ("gpus",),
    "machine": ("machines",),
    "image": ("images", "images.drivers", "images.changes"),
    "runtime": ("colab.runtimes",),
    "variable": ("variables", "variables.folders", "variables.allocator"),
    "python": ("pythons",),
    "package": (
        "packages.runs",
        "extensions.capability_floors",
        "extensions.sdist_only",
        "numpy_builds",
    ),
}
"""Words for tables that a person may use in addition to their names."""


@dataclass(frozen=True, slots=True)
class FactRow:
    """A row of a table: its key ("2.11.0:cu128:linux-x86_64"), its values and its evidence."""

    table: str
    key_parts: tuple[str, ...]
    values: Mapping[str, Any]
    evidence: Evidence

    @property
    def key(self) -> str:
        """The parts of the key, joined by colons."""
        return ":".join(self.key_parts)


@dataclass(frozen=True, slots=True)
class FactTable:
    """A table ("torch", "cuda.drivers"): its description, key columns, evidence and rows."""

    name: str
    about: str
    columns: tuple[str, ...]
    evidence: Evidence
    rows: tuple[FactRow, ...]


def load_tables(compiled: Path, folder: Path = LAZY_TABLES_FOLDER) -> dict[str, FactTable]:
    """Return all tables by name, including those that are loaded on demand.

    Raises:
        ProvisionError: a file is missing, damaged, or written for a later version.
    """
    lazy = {path: read_compiled(path) for path in sorted(folder.glob("*.json"))}
    return _find_tables(compiled, read_compiled(compiled), lazy)


def load_tables_from(texts: Mapping[str, bytes]) -> dict[str, FactTable]:
    """Return all tables by name; `texts` are the files by path, "compiled.json" among them.

    Raises:
        ProvisionError: a table is damaged, or written for a later version.
    """
    contents = {Path(name): read_compiled(Path(name), text) for name, text in texts.items()}
    compiled = Path(COMPILED_NAME)
    return _find_tables(compiled, contents.pop(compiled), contents)


def _find_tables(
    compiled: Path, content: dict[str, Any], lazy: Mapping[Path, dict[str, Any]]
) -> dict[str, FactTable]:
    content = {key: value for key, value in content.items() if key != "schema"}
    for path, table in lazy.items():
        content[path.stem] = table
    try:
        tables = [table for stem, raw in content.items() for table in _parts_of_table(stem, raw)]
    except MALFORMED as error:
        raise damaged_tables_error(compiled, error) from None
    return {table.name: table for table in tables}


def find_rows(tables: Mapping[str, FactTable], query: str) -> tuple[FactRow, ...]:
    """Return the rows that match TABLE:KEY, ALIAS:KEY or a key alone.

    The first parts of a key are enough. A release matches the row of its range, 2.11 matches
    2.11.0, and a card matches its aliases. Rows with a shorter key, such as the release of a
    build, come first.
    """
    first, *key = query.split(":")
    names = _TABLE_ALIASES.get(first, (first,))
    named = [row for name in names if name in tables for row in tables[name].rows]
    # A part of a key may contain a colon itself.
    rest = ":".join(key)
    matches = [row for row in named if key and (row.key == rest or _matches(row, key))]
    if not matches:
        rows = (row for table in tables.values() for row in table.rows)
        return tuple(row for row in rows if _matches(row, [first, *key]))
    shorter = (row for row in named if len(row.key_parts) < len(key))
    return (*(row for row in shorter if _matches(row, key[: len(row.key_parts)])), *matches)


def _parts_of_table(stem: str, raw: dict[str, Any]) -> Iterator[FactTable]:
    evidence = _evidence(raw, raw)
    for part, columns in raw["keys"].items():
        name = stem if part == "rows" else f"{stem}.{part}"
        rows = tuple(_fact_row(name, row, columns, raw) for row in expand_rows(raw, part))
        yield FactTable(name, raw["about"], tuple(columns), evidence, rows)


def _fact_row(table: str, row: dict[str, Any], columns: list[str], raw: dict[str, Any]) -> FactRow:
    return FactRow(
        table,
        tuple(_key_text(row[column]) for column in columns),
        {field: value for field, value in row.items() if field not in EVIDENCE_FIELDS},
        _evidence(row, raw),
    )


def _evidence(row: Mapping[str, Any], table: Mapping[str, Any]) -> Evidence:
    """Return the evidence of a row or table; tables of earlier versions count no sources."""
    defaults = {"sources_count": 0, **table}
    return Evidence(*(row.get(field, defaults[field]) for field in EVIDENCE_FIELDS))


def _key_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _matches(row: FactRow, key: list[str]) -> bool:
    """Return whether a key is equal to the first parts of a row's key, aliases included."""
    if len(key) > len(row.key_parts):
        return False
    return all(
        _is_same_text_or_version(part, text)
        or (index == 0 and _is_alias(row, text))
        or (index == len(row.key_parts) - 1 and _is_in_release_range(row, text))
        for index, (part, text) in enumerate(zip(row.key_parts, key, strict=False))
    )


def _is_same_text_or_version(left: str, right: str) -> bool:
    if left.casefold() == right.casefold():
        return True
    version = parse_version(left)
    return version is not None and version == parse_version(right)


def _is_alias(row: FactRow, name: str) -> bool:
    return name.casefold() in (str(alias).casefold() for alias in row.values.get("aliases", ()))


def _is_in_release_range(row: FactRow, version: str) -> bool:
    """Return whether a row about the releases `first` to `last` applies to a version."""
    texts = (row.values.get("first"), version, row.values.get("last"))
    first, release, last = (parse_version(str(text)) for text in texts)
    return bool(first and release and last and first <= release <= last)
