"""Facts as text and as data: tables, rows, consequences, sources and age."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from provision.facts import Evidence
from provision.facts.consequences import ExplainedRow
from provision.facts.table_diff import RowChange, StaleTable
from provision.facts.table_lookup import FactTable
from provision.sanitize import escape_line
from provision.spelling import pluralize
from provision.views.formatting import (
    Style,
    Styler,
    format_json_value,
    indent_rest,
    wrap,
)

VERSION = 1
_MAX_ROWS = 12


def render_tables(tables: Sequence[tuple[FactTable, int | None]], color: bool) -> str:
    """Return a line for each table: name, rows, key, age, confidence."""
    styler, width = Styler(color), max(len(table.name) for table, _ in tables)
    lines = [
        f"{styler(f'{table.name:<{width}}', Style.STRONG)}  {len(table.rows):>4} rows  "
        f"{_age(days):<13}  {table.evidence.confidence:<6}  by {':'.join(table.columns)}"
        for table, days in tables
    ]
    note = (
        "List the rows of a table with `provision facts list TABLE`; show all facts about a key "
        "with `provision facts why KEY`."
    )
    return "\n".join([*lines, "", note])


def render_keys(rows: Sequence[ExplainedRow]) -> str:
    """Return the keys of rows, each on its own line."""
    return "\n".join(escape_line(explained.row.key) for explained in rows)


def render_rows(rows: Sequence[ExplainedRow], color: bool, width: int) -> str:
    """Return the newest rows of each table: values, consequences, source, date and confidence."""
    tables = list(dict.fromkeys(explained.row.table for explained in rows))
    newest = list(reversed(rows))
    newest.sort(key=lambda explained: tables.index(explained.row.table))
    blocks = ["\n".join(_row(explained, Styler(color), width)) for explained in newest[:_MAX_ROWS]]
    if len(rows) > _MAX_ROWS:
        blocks.append(f"(+{len(rows) - _MAX_ROWS} older rows: --output-format json)")
    return "\n\n".join(blocks)


def render_changes(changes: Sequence[RowChange]) -> str:
    """Return a line for each row that differs."""
    lines = []
    for change in changes:
        symbol = "~"
        if change.old is None or change.new is None:
            symbol = "+" if change.old is None else "-"
        fields = f": {', '.join(change.fields)}" if change.fields else ""
        lines.append(escape_line(f"{symbol} {change.table}:{change.key}{fields}"))
    return "\n".join(lines or ["No changes."])


def changes_to_json(changes: Sequence[RowChange]) -> list[dict[str, Any]]:
    """Return the rows that differ as data."""
    return [
        {
            "table": change.table,
            "key": change.key,
            "old": None if change.old is None else dict(change.old.values),
            "new": None if change.new is None else dict(change.new.values),
            "fields": list(change.fields),
        }
        for change in changes
    ]


def render_stale(tables: Sequence[StaleTable], days: int) -> str:
    """Return a line for each table with stale rows."""
    lines = [
        escape_line(
            f"{stale.table}: {pluralize(stale.rows, 'row')}; the oldest, {stale.oldest.key}, was "
            f"read {stale.age_days} days ago in {stale.oldest.evidence.source}"
        )
        for stale in tables
    ]
    return "\n".join(lines or [f"No row's source was last read more than {days} days ago."])


def stale_to_json(tables: Sequence[StaleTable]) -> list[dict[str, Any]]:
    """Return the tables with stale rows as data."""
    return [
        {
            "table": stale.table,
            "rows": stale.rows,
            "oldest": stale.oldest.key,
            **_evidence(stale.oldest.evidence, stale.age_days),
        }
        for stale in tables
    ]


def tables_to_json(tables: Sequence[tuple[FactTable, int | None]]) -> dict[str, Any]:
    """Return the tables as data."""
    return {
        "version": VERSION,
        "tables": [
            {
                "name": table.name,
                "about": table.about,
                "rows": len(table.rows),
                "key": list(table.columns),
                **_evidence(table.evidence, days),
            }
            for table, days in tables
        ],
    }


def rows_to_json(rows: Sequence[ExplainedRow]) -> dict[str, Any]:
    """Return rows as data."""
    return {
        "version": VERSION,
        "rows": [
            {
                "table": explained.row.table,
                "key": explained.row.key,
                "values": dict(explained.row.values),
                "follows": list(explained.consequences),
                **_evidence(explained.row.evidence, explained.age_days),
            }
            for explained in rows
        ],
    }


def _evidence(evidence: Evidence, age_days: int | None) -> dict[str, Any]:
    return {
        "source": evidence.source,
        "as_of": evidence.as_of,
        "age_days": age_days,
        "confidence": evidence.confidence,
        "sources_count": evidence.sources_count,
    }


def _row(explained: ExplainedRow, styler: Styler, width: int) -> Iterator[str]:
    entry, evidence = explained.row, explained.row.evidence
    yield styler(escape_line(f"{entry.table}:{entry.key}"), Style.STRONG)
    fields = [
        (name, format_json_value(value))
        for name, value in entry.values.items()
        if value not in (None, "", [], {})
    ]
    label_width = max(len(name) for name, _ in (*fields, ("confidence", "")))
    fields += [("means", sentence) for sentence in explained.consequences]
    fields.append(("source", escape_line(evidence.source)))
    dated = f"{evidence.as_of}, {_age(explained.age_days)}; confidence {evidence.confidence}"
    if evidence.sources_count:
        dated += f" ({pluralize(evidence.sources_count, 'source')})"
    for name, text in (*fields, ("as of", dated)):
        rows = wrap(text, max(20, width - label_width - 4))
        yield from indent_rest(f"  {name:<{label_width}}  ", rows, label_width + 4)


def _age(days: int | None) -> str:
    return "in the future" if days is None else pluralize(days, "day") + " old"
