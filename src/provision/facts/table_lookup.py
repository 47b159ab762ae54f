"""The tables as a person looks them up: every row of every table under one kind of key, with what
is known of its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.facts.lazy_tables import (
    LAZY_TABLES_FOLDER,
    damaged_tables_error,
    expand_rows,
    read_compiled,
)
from provision.facts.schema_torch import Evidence
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
        "extensions.numpy2",
    ),
}
"""Words a person may say for tables, beside their names."""
_EVIDENCE = ("source", "as_of", "confidence")


@dataclass(frozen=True, slots=True)
class FactRow:
    """One row: the table it stands in, its key ("2.11.0:cu128:linux-x86_64"), its values, and its
    evidence.
    """

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
    """A table: its name ("torch", "cuda.drivers"), what it says of itself, which columns make the
    key, its evidence and its rows.
    """

    name: str
    about: str
    columns: tuple[str, ...]
    evidence: Evidence
    rows: tuple[FactRow, ...]


def load_tables(compiled: Path, folder: Path = LAZY_TABLES_FOLDER) -> dict[str, FactTable]:
    """Return all tables by name, those loaded on demand included.

    Raises ProvisionError when a file is missing, damaged, or written for a later version.
    """
    files = {path.stem: read_compiled(path) for path in sorted(folder.glob("*.json"))}
    try:
        core = {name: table for name, table in read_compiled(compiled).items() if name != "schema"}
        return {
            table.name: table
            for stem, raw in {**core, **files}.items()
            for table in _tables(stem, raw)
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged_tables_error(compiled, error) from None


def find_rows(known: Mapping[str, FactTable], text: str) -> tuple[FactRow, ...]:
    """Return the rows that `text` means: TABLE:KEY, a word for a table and a key, or a key alone;
    the first parts of a key are enough.

    A release lies in the row of its run; 2.11 is 2.11.0; a card answers to its aliases. What a
    found row belongs to (the release of a build) comes first.
    """
    word, *rest = text.split(":")
    named = [
        table
        for name in _TABLE_ALIASES.get(word, (word,))
        if (table := known.get(name)) is not None
    ]
    found = [
        entry for table in named for entry in table.rows if rest and _matches(entry, tuple(rest))
    ]
    if found:
        above = (
            entry
            for table in named
            for entry in table.rows
            if len(entry.key_parts) < len(rest)
            and _matches(entry, tuple(rest[: len(entry.key_parts)]))
        )
        return (*above, *found)
    return tuple(
        entry for table in known.values() for entry in table.rows if _matches(entry, (word, *rest))
    )


def _tables(stem: str, raw: dict[str, Any]) -> Iterator[FactTable]:
    evidence = Evidence(*(raw[key] for key in _EVIDENCE))
    for name, columns in raw["keys"].items():
        title = stem if name == "rows" else f"{stem}.{name}"
        rows = tuple(_entry(title, row, columns, raw) for row in expand_rows(raw, name))
        yield FactTable(title, raw["about"], tuple(columns), evidence, rows)


def _entry(table: str, row: dict[str, Any], columns: list[str], raw: dict[str, Any]) -> FactRow:
    values = {key: value for key, value in row.items() if key not in _EVIDENCE}
    return FactRow(
        table,
        tuple(_key_text(row[column]) for column in columns),
        values,
        Evidence(*(row.get(key, raw[key]) for key in _EVIDENCE)),
    )


def _key_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _matches(entry: FactRow, wanted: tuple[str, ...]) -> bool:
    if len(wanted) > len(entry.key_parts):
        return False
    return all(
        _is_equal_key(have, want) or _matches_alias(entry, place, want)
        for place, (have, want) in enumerate(zip(entry.key_parts, wanted, strict=False))
    )


def _is_equal_key(have: str, want: str) -> bool:
    if have.casefold() == want.casefold():
        return True
    left, right = parse_version(have), parse_version(want)
    return left is not None and left == right


def _matches_alias(entry: FactRow, place: int, want: str) -> bool:
    """Tell whether a row goes by another name: a card's alias, or a release within a run (its
    `first` is the last part of the key).
    """
    if place == 0 and want.casefold() in (
        str(alias).casefold() for alias in entry.values.get("aliases", ())
    ):
        return True
    if (
        "first" not in entry.values
        or "last" not in entry.values
        or place != len(entry.key_parts) - 1
    ):
        return False
    low, high, wanted = (
        parse_version(str(text)) for text in (entry.values["first"], entry.values["last"], want)
    )
    return low is not None and high is not None and wanted is not None and low <= wanted <= high
