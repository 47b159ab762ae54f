"""Facts as text and as data: tables, rows, consequences, sources and age."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from provision.facts import Evidence
from provision.facts.consequences import ExplainedRow
from provision.facts.table_lookup import FactTable
from provision.sanitize import escape_line
from provision.views.formatting import format_json_value, pluralize
from provision.views.terminal_text import Style, Styler, wrap

VERSION = 1


def render_tables(found: Sequence[tuple[FactTable, int | None]], color: bool) -> str:
    """Return the tables, one a line: name, rows, key, age, confidence."""
    pen, room = Styler(color), max(len(table.name) for table, _ in found)
    lines = (
        f"{pen(f'{table.name:<{room}}', Style.STRONG)}  {len(table.rows):>4} rows  "
        f"{_age(days):<13}  {table.evidence.confidence:<6}  by {':'.join(table.columns)}"
        for table, days in found
    )
    return "\n".join(
        [
            *lines,
            "",
            (
                "provision facts list TABLE shows the rows of one, provision facts why KEY all "
                "that is known of a thing."
            ),
        ]
    )


def render_keys(found: Sequence[ExplainedRow]) -> str:
    """Return rows by their keys alone, one a line."""
    return "\n".join(escape_line(known.row.key) for known in found)


def render_rows(found: Sequence[ExplainedRow], color: bool, width: int) -> str:
    """Return rows whole: values, what follows, and the source with its day, age and confidence."""
    return "\n\n".join("\n".join(_row(known, Styler(color), width)) for known in found)


def tables_to_json(found: Sequence[tuple[FactTable, int | None]]) -> dict[str, Any]:
    """Return the tables as data."""
    return {
        "version": VERSION,
        "tables": [
            {
                "name": t.name,
                "about": t.about,
                "rows": len(t.rows),
                "key": list(t.columns),
                **_evidence(t.evidence, days),
            }
            for t, days in found
        ],
    }


def rows_to_json(found: Sequence[ExplainedRow]) -> dict[str, Any]:
    """Return rows as data."""
    return {"version": VERSION, "rows": [_document(known) for known in found]}


def _document(known: ExplainedRow) -> dict[str, Any]:
    entry = known.row
    said = {
        "table": entry.table,
        "key": entry.key,
        "values": dict(entry.values),
        "follows": list(known.consequences),
    }
    return {**said, **_evidence(entry.evidence, known.age_days)}


def _evidence(evidence: Evidence, age_days: int | None) -> dict[str, Any]:
    return {
        "source": evidence.source,
        "as_of": evidence.as_of,
        "age_days": age_days,
        "confidence": evidence.confidence,
    }


def _row(known: ExplainedRow, pen: Styler, width: int) -> Iterator[str]:
    entry = known.row
    yield pen(escape_line(f"{entry.table}:{entry.key}"), Style.STRONG)
    shown = {
        name: format_json_value(value)
        for name, value in entry.values.items()
        if value not in (None, "", [], {})
    }
    room = max(map(len, (*shown, "confidence")))
    for name, text in shown.items():
        yield from _field(name, text, room, width)
    for sentence in known.consequences:
        yield from _field("so", sentence, room, width)
    yield from _field("source", escape_line(entry.evidence.source), room, width)
    yield from _field(
        "as of",
        f"{entry.evidence.as_of}, {_age(known.age_days)}; confidence {entry.evidence.confidence}",
        room,
        width,
    )


def _field(name: str, text: str, room: int, width: int) -> Iterator[str]:
    for number, line in enumerate(wrap(text, max(20, width - room - 4))):
        yield f"  {name if number == 0 else '':<{room}}  {line}"


def _age(days: int | None) -> str:
    return "in the future" if days is None else pluralize(days, "day") + " old"
