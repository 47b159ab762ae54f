"""Look the facts up: which tables there are, what stands in them, and why we say what we say of a thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.effects import World
from provision.facts import COMPILED, load
from provision.facts.browse import Entry, Table, find, tables
from provision.facts.consequences import Known, age, consequences
from provision.source.suggesting import nearest


@dataclass(frozen=True, slots=True)
class Nothing:
    """What was asked for is not in the facts; `nearest` is what may have been meant."""

    asked: str
    nearest: tuple[str, ...]


def list_tables(world: World, compiled: Path = COMPILED) -> tuple[tuple[Table, int | None], ...]:
    """Return all tables, each with the days since its sources were read. Raises ProvisionError when the facts cannot be read."""
    return tuple((table, age(table.evidence.as_of, world.now())) for table in tables(compiled).values())


def list_table(name: str, world: World, compiled: Path = COMPILED) -> tuple[Known, ...] | Nothing:
    """Return all rows of a table, or the names that are near. Raises ProvisionError when the facts cannot be read."""
    known = tables(compiled)
    if name not in known:
        return Nothing(name, nearest(name, known))
    return tuple(Known(entry, age(entry.evidence.as_of, world.now())) for entry in known[name].rows)


def show(name: str, key: str, world: World, compiled: Path = COMPILED) -> tuple[Known, ...] | Nothing:
    """Return the rows of one table that a key means. Raises ProvisionError when the facts cannot be read."""
    known = tables(compiled)
    if name not in known:
        return Nothing(name, nearest(name, known))
    found = find({name: known[name]}, f"{name}:{key}")
    return _known(found, world, compiled) if found else Nothing(key, nearest(key, (entry.key for entry in known[name].rows)))


def why(key: str, world: World, compiled: Path = COMPILED) -> tuple[Known, ...] | Nothing:
    """Return everything that is known of a thing, and what follows. Raises ProvisionError when the facts cannot be read."""
    known = tables(compiled)
    found = find(known, key)
    return _known(found, world, compiled) if found else Nothing(key, nearest(key, _keys(known, key)))


def _known(found: Iterable[Entry], world: World, compiled: Path) -> tuple[Known, ...]:
    facts, now = load(compiled), world.now()
    return tuple(Known(entry, age(entry.evidence.as_of, now), consequences(entry, facts)) for entry in found)


def _keys(known: Mapping[str, Table], asked: str) -> list[str]:
    """Return all keys with as many parts as were asked for, with and without the name of their table."""
    size = asked.count(":") + 1
    whole = [(entry.table, *entry.parts) for table in known.values() for entry in table.rows]
    keys = [":".join(parts[start : start + size]) for parts in whole for start in (0, 1) if len(parts) >= start + size]
    return sorted(set(keys))
