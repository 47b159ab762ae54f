"""Look up facts: tables, their rows, and everything known about a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.effects.system import System
from provision.facts import COMPILED_TABLES, load_facts
from provision.facts.consequences import ExplainedRow, age_in_days, derive_consequences
from provision.facts.table_lookup import FactRow, FactTable, find_rows, load_tables
from provision.spelling import nearest_words


@dataclass(frozen=True, slots=True)
class UnknownFact:
    """What was asked for is not in the facts; `nearest` is what may have been meant."""

    query: str
    nearest: tuple[str, ...]


def list_tables(
    world: System, compiled: Path = COMPILED_TABLES
) -> tuple[tuple[FactTable, int | None], ...]:
    """Return all tables, each with the days since its sources were read.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    return tuple(
        (table, age_in_days(table.evidence.as_of, world.now()))
        for table in load_tables(compiled).values()
    )


def list_table(
    name: str, world: System, compiled: Path = COMPILED_TABLES
) -> tuple[ExplainedRow, ...] | UnknownFact:
    """Return all rows of a table, or the nearest names.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    known = load_tables(compiled)
    if name not in known:
        return UnknownFact(name, nearest_words(name, known))
    return tuple(
        ExplainedRow(entry, age_in_days(entry.evidence.as_of, world.now()))
        for entry in known[name].rows
    )


def show(
    name: str, key: str, world: System, compiled: Path = COMPILED_TABLES
) -> tuple[ExplainedRow, ...] | UnknownFact:
    """Return the rows of a table for a key.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    known = load_tables(compiled)
    if name not in known:
        return UnknownFact(name, nearest_words(name, known))
    found = find_rows({name: known[name]}, f"{name}:{key}")
    return (
        _explain_entries(found, world, compiled)
        if found
        else UnknownFact(key, nearest_words(key, (entry.key for entry in known[name].rows)))
    )


def why(
    key: str, world: System, compiled: Path = COMPILED_TABLES
) -> tuple[ExplainedRow, ...] | UnknownFact:
    """Return everything known about a key, and its consequences.

    Raises:
        ProvisionError: the facts cannot be read.
    """
    known = load_tables(compiled)
    found = find_rows(known, key)
    return (
        _explain_entries(found, world, compiled)
        if found
        else UnknownFact(key, nearest_words(key, _keys(known, key)))
    )


def _explain_entries(
    found: Iterable[FactRow], world: System, compiled: Path
) -> tuple[ExplainedRow, ...]:
    facts, now = load_facts(compiled), world.now()
    return tuple(
        ExplainedRow(
            entry, age_in_days(entry.evidence.as_of, now), derive_consequences(entry, facts)
        )
        for entry in found
    )


def _keys(known: Mapping[str, FactTable], asked: str) -> list[str]:
    """Return all keys with as many parts as the query, with and without their table."""
    size = asked.count(":") + 1
    whole = [(entry.table, *entry.key_parts) for table in known.values() for entry in table.rows]
    keys = [
        ":".join(parts[start : start + size])
        for parts in whole
        for start in (0, 1)
        if len(parts) >= start + size
    ]
    return sorted(set(keys))
