"""Look up facts: tables, their rows, and everything known about a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.commands.shared.facts_selection import select_facts
from provision.effects.system import System
from provision.facts import load_facts
from provision.facts.consequences import ExplainedRow, age_in_days, derive_consequences
from provision.facts.table_diff import RowChange, StaleTable, diff_tables, list_stale
from provision.facts.table_lookup import FactRow, FactTable, find_rows, load_tables
from provision.facts.tables_in_use import COMPILED_NAME, LAZY_NAME, tables_in_use
from provision.spelling import nearest_words


@dataclass(frozen=True, slots=True)
class UnknownFact:
    """A query that the facts cannot answer, and the nearest keys or tables that they have."""

    query: str
    nearest: tuple[str, ...]


def list_tables(system: System) -> tuple[tuple[FactTable, int | None], ...]:
    """Return all tables, each with the days since its sources were read.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    return tuple(
        (table, age_in_days(table.evidence.as_of, system.now()))
        for table in _load_tables(system).values()
    )


def list_table(name: str, system: System) -> tuple[ExplainedRow, ...] | UnknownFact:
    """Return all rows of a table, or the nearest names.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    tables = _load_tables(system)
    if name not in tables:
        return UnknownFact(name, nearest_words(name, tables))
    return tuple(
        ExplainedRow(row, age_in_days(row.evidence.as_of, system.now()))
        for row in tables[name].rows
    )


def show(name: str, key: str, system: System) -> tuple[ExplainedRow, ...] | UnknownFact:
    """Return the rows of a table for a key.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    tables = _load_tables(system)
    if name not in tables:
        return UnknownFact(name, nearest_words(name, tables))
    rows = find_rows({name: tables[name]}, f"{name}:{key}")
    return _explain_rows(rows, key, (row.key for row in tables[name].rows), system)


def why(key: str, system: System) -> tuple[ExplainedRow, ...] | UnknownFact:
    """Return everything known about a key, and its consequences.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    tables = _load_tables(system)
    return _explain_rows(find_rows(tables, key), key, _list_keys(tables, key), system)


def diff(old: Path, system: System) -> tuple[RowChange, ...]:
    """Return the rows that differ between an older compiled file and the facts in use.

    Raises:
        ProvisionError: a file is missing, damaged, or written for a later version.
    """
    before = load_tables(old, old.parent / "on_demand")
    after = _load_tables(system)
    # A single file has no tables that are loaded on demand: nothing is known about their rows.
    known = {table.partition(".")[0] for table in before}
    shared = {name: table for name, table in after.items() if name.partition(".")[0] in known}
    return tuple(diff_tables(before, shared))


def find_stale(days: int, system: System) -> tuple[StaleTable, ...]:
    """Return the tables with rows that were read more than `days` days ago.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    return tuple(list_stale(_load_tables(system), system.now(), days))


def _load_tables(system: System) -> dict[str, FactTable]:
    """Return the tables that the project of the working folder uses."""
    select_facts(Path("provision.yaml"), system)
    folder = tables_in_use.get()
    return load_tables(folder / COMPILED_NAME, folder / LAZY_NAME)


def _explain_rows(
    rows: tuple[FactRow, ...], key: str, known_keys: Iterable[str], system: System
) -> tuple[ExplainedRow, ...] | UnknownFact:
    """Return rows with their consequences; without rows the nearest keys."""
    if not rows:
        return UnknownFact(key, nearest_words(key, known_keys))
    facts, now = load_facts(), system.now()
    return tuple(
        ExplainedRow(row, age_in_days(row.evidence.as_of, now), derive_consequences(row, facts))
        for row in rows
    )


def _list_keys(tables: Mapping[str, FactTable], query: str) -> list[str]:
    """Return all keys with as many parts as the query, with and without their table."""
    size = query.count(":") + 1
    keys: set[str] = set()
    for table in tables.values():
        for row in table.rows:
            for parts in ((row.table, *row.key_parts), row.key_parts):
                if len(parts) >= size:
                    keys.add(":".join(parts[:size]))
    return sorted(keys)
