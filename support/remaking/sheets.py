"""A list of rows in a YAML table, changed where it must be: comments, anchors and the layout of all
other rows stay as a person wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

WIDTH = 160
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """A row as it stands in the file: its text, its values, and the text of each `key: value`."""

    text: str
    values: Row
    items: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of one list, and the text before and after them."""

    before: str
    rows: tuple[Written, ...]
    after: str


def sheet(text: str, name: str) -> Sheet:
    """Find the list `name` in a table."""
    values, node = yaml.safe_load(text)[name], _list(text, name)
    rows = tuple(_written(text, row, value) for row, value in zip(node.value, values, strict=True))
    first, last = node.value[0], node.value[-1]
    between = "".join(
        text[left.end_mark.index : right.start_mark.index]
        for left, right in zip(node.value, node.value[1:], strict=False)
    )
    if "#" in between:
        raise ValueError(f"a comment stands between the rows of {name}; put it above the table")
    return Sheet(text[: first.start_mark.index], rows, text[last.end_mark.index :])


def rewritten(old: Sheet, key: Sequence[str], rows: Iterable[Row]) -> str:
    """Return the table with `rows` in place of the old ones; what did not change keeps its text."""
    known = {tuple(row.values[part] for part in key): row for row in old.rows}
    texts = [_text(row, known.get(tuple(row[part] for part in key))) for row in rows]
    return old.before + "\n  - ".join(texts) + old.after


def written(value: Any) -> str:
    """Return a value in YAML's flow style: plain names bare, all other text between double quotes."""  # noqa: E501
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{written(name)}: {written(item)}" for name, item in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if (
        isinstance(value, str)
        and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", value)
        and yaml.safe_load(value) == value
    ):
        return value
    return json.dumps(value)


def _text(row: Row, old: Written | None) -> str:
    if old is not None and row == old.values:
        return old.text
    items, values = (old.items, old.values) if old is not None else ({}, {})
    names = [name for name in dict.fromkeys((*items, *row)) if name in row]
    return _wrapped(
        [
            items[name]
            if name in items and values[name] == row[name]
            else f"{name}: {written(row[name])}"
            for name in names
        ]
    )


def _wrapped(items: list[str]) -> str:
    """Return a row's items in lines of at most WIDTH columns, where they stand after `  - `."""
    lines, width = [""], 4
    for place, item in enumerate(items):
        part = ("{" if place == 0 else "") + item + ("}" if place == len(items) - 1 else ",")
        if lines[-1] and width + 1 + len(part) > WIDTH:
            lines.append("")
            width = 5
        width += len(part) + bool(lines[-1])
        lines[-1] += " " + part if lines[-1] else part
    return "\n     ".join(lines)


def _list(text: str, name: str) -> yaml.SequenceNode:
    table = yaml.compose(text, Loader=yaml.SafeLoader)
    return next(value for key, value in table.value if key.value == name)


def _written(text: str, node: yaml.MappingNode, values: Row) -> Written:
    starts = [key.start_mark.index for key, _ in node.value]
    ends = [*starts[1:], node.end_mark.index - 1]
    items = (
        re.sub(r",?\s*$", "", text[start:end]) for start, end in zip(starts, ends, strict=True)
    )
    return Written(
        text[node.start_mark.index : node.end_mark.index],
        values,
        dict(zip(values, items, strict=True)),
    )
