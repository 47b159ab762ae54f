"""Comparison of two sets of fact tables, row by row, and the rows that were read long ago."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from provision.facts.consequences import age_in_days
from provision.facts.table_lookup import FactRow, FactTable


class RowChange(NamedTuple):
    """A row of a table that was added (`old` is None), removed (`new` is None) or changed."""

    table: str
    key: str
    old: FactRow | None
    new: FactRow | None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that changed; () for a row that was added or removed."""
        if self.old is None or self.new is None:
            return ()
        names = dict.fromkeys((*self.old.values, *self.new.values))
        changed = [name for name in names if self.old.values.get(name) != self.new.values.get(name)]
        before, after = self.old.evidence._asdict(), self.new.evidence._asdict()
        return (*changed, *(name for name in before if before[name] != after[name]))


class StaleTable(NamedTuple):
    """A table with rows that were read more than some days ago, and the oldest of them."""

    table: str
    rows: int
    oldest: FactRow
    age_days: int


def diff_tables(old: Mapping[str, FactTable], new: Mapping[str, FactTable]) -> Iterator[RowChange]:
    """Yield the rows that differ, table by table; rows with one key are compared in their order."""
    for name in dict.fromkeys((*old, *new)):
        before, after = _by_key(old.get(name)), _by_key(new.get(name))
        for key in dict.fromkeys((*before, *after)):
            was, now = before.get(key), after.get(key)
            if was != now:
                yield RowChange(name, key[0], was, now)


def list_stale(tables: Mapping[str, FactTable], now: str, days: int) -> Iterator[StaleTable]:
    """Yield the tables with rows that were read more than `days` days before `now`."""
    for table in tables.values():
        ages = [(age_in_days(row.evidence.as_of, now), row) for row in table.rows]
        stale = [(age, row) for age, row in ages if age is not None and age > days]
        if stale:
            age, oldest = max(stale, key=lambda pair: pair[0])
            yield StaleTable(table.name, len(stale), oldest, age)


def _by_key(table: FactTable | None) -> dict[tuple[str, int], FactRow]:
    rows: dict[tuple[str, int], FactRow] = {}
    for row in table.rows if table is not None else ():
        number = 0
        while (row.key, number) in rows:
            number += 1
        rows[row.key, number] = row
    return rows
