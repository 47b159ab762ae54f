"""Facts as text and as data: tables, rows, consequences, sources and age."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from provision.facts import Evidence
from provision.facts.consequences import ExplainedRow
from provision.facts.table_lookup import FactTable
from provision.sanitize import escape_line
from provision.views.formatting import (
    Style,
    Styler,
    format_json_value,
    indent_rest,
    pluralize,
    wrap,
)

VERSION = 1


def render_tables(tables: Sequence[tuple[FactTable, int | None]], color: bool) -> str:
    """Return the tables, one a line: name, rows, key, age, confidence."""
    styler, width = Styler(color), max(len(table.name) for table, _ in tables)
    lines = [
        f"{styler(f'{table.name:<{width}}', Style.STRONG)}  {len(table.rows):>4} rows  "
        f"{_age(days):<13}  {table.evidence.confidence:<6}  by {':'.join(table.columns)}"
        for table, days in tables
    ]
    note = (
        "provision facts list TABLE shows the rows of one, provision facts why KEY all "
        "that is known of a thing."
    )
    return "\n".join([*lines, "", note])


def render_keys(rows: Sequence[ExplainedRow]) -> str:
    """Return rows by their keys alone, one a line."""
    return "\n".join(escape_line(known.row.key) for known in rows)


def render_rows(rows: Sequence[ExplainedRow], color: bool, width: int) -> str:
    """Return rows whole: values, what follows, and the source with its day, age and confidence."""
    return "\n\n".join("\n".join(_row(known, Styler(color), width)) for known in rows)


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
                "table": known.row.table,
                "key": known.row.key,
                "values": dict(known.row.values),
                "follows": list(known.consequences),
                **_evidence(known.row.evidence, known.age_days),
            }
            for known in rows
        ],
    }


def _evidence(evidence: Evidence, age_days: int | None) -> dict[str, Any]:
    return {
        "source": evidence.source,
        "as_of": evidence.as_of,
        "age_days": age_days,
        "confidence": evidence.confidence,
    }


def _row(known: ExplainedRow, styler: Styler, width: int) -> Iterator[str]:
    entry, evidence = known.row, known.row.evidence
    yield styler(escape_line(f"{entry.table}:{entry.key}"), Style.STRONG)
    fields = [
        (name, format_json_value(value))
        for name, value in entry.values.items()
        if value not in (None, "", [], {})
    ]
    label_width = max(len(name) for name, _ in (*fields, ("confidence", "")))
    fields += [("so", sentence) for sentence in known.consequences]
    fields.append(("source", escape_line(evidence.source)))
    dated = f"{evidence.as_of}, {_age(known.age_days)}; confidence {evidence.confidence}"
    for name, text in (*fields, ("as of", dated)):
        rows = wrap(text, max(20, width - label_width - 4))
        yield from indent_rest(f"  {name:<{label_width}}  ", rows, label_width + 4)


def _age(days: int | None) -> str:
    return "in the future" if days is None else pluralize(days, "day") + " old"
