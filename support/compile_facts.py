"""Compiles the fact tables (YAML and CSV) into the JSON files that the program loads.

`--check` only reports whether the files are up to date.
"""

from __future__ import annotations

import csv
import datetime
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from remaking.literals import required_texts

FACTS = Path(__file__).parents[1] / "src" / "provision" / "facts"
COMPILED = FACTS / "compiled.json"
PARTS = FACTS / "on_demand"
SCHEMA = 2
EVIDENCE = ("source", "as_of", "confidence")
DEVICE_SYMPTOMS = FACTS.parent / "agent" / "probe" / "judging" / "symptoms.py"
DEVICE_SYMPTOMS_HEAD = '''\
"""Causes and fixes of known error texts, written by support/compile_facts.py."""

# ruff: noqa: E501
from __future__ import annotations

import re


def explain_error(text: str) -> tuple[str | None, str | None]:
    """Return the cause and the fix of an error text; (None, None) if it is not known."""
    for pattern, cause, fix in _SYMPTOMS:
        if re.search(pattern, text, re.IGNORECASE):
            return cause, fix
    return None, None


_SYMPTOMS: tuple[tuple[str, str, str], ...] = (
'''
FOR_READERS = ("sources", "csv", "types", "device_rows", "read_by")
"""Keys of a table that stay out of the JSON: anchors, how its CSV is read, the probe's rows, and
the script that reads the table."""


def compiled(folder: Path) -> str:
    """Return the compiled form of all tables in a folder.

    Keys are sorted and each row is a line, so that a changed fact is a changed line.
    """
    tables = {path.stem: table(path) for path in sorted(folder.glob("*.yaml"))}
    texts = [
        f'"schema": {SCHEMA}',
        *(f"{json.dumps(name)}: {{\n{body(content)}\n}}" for name, content in tables.items()),
    ]
    return "{\n" + ",\n".join(texts) + "\n}\n"


def parts(folder: Path) -> dict[str, str]:
    """Return the compiled form of each table that is loaded on demand, by file name."""
    return {
        f"{path.stem}.json": f'{{\n"schema": {SCHEMA},\n{body(table(path))}\n}}\n'
        for path in sorted((folder / "parts").glob("*.yaml"))
    }


def device_symptoms(folder: Path) -> str:
    """Return the module with the error texts that the probe explains."""
    path = folder / "parts" / "symptoms.yaml"
    rows = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["device_rows"]
    lines = [
        f'    (\n        r"{row["regex"]}",\n'
        f"        {quoted(row['cause'])},\n        {quoted(row['fix'])},\n    ),\n"
        for row in rows
    ]
    return f"{DEVICE_SYMPTOMS_HEAD}{''.join(lines)})\n"


def quoted(text: str) -> str:
    """Return a Python literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def table(path: Path) -> dict[str, Any]:
    """Return a table with its columns and rows, without the keys for its editors."""
    text = path.read_text(encoding="utf-8")
    content = yaml.load(text, yaml.CSafeLoader)
    if cut := next(cut_texts(content), None):
        raise SystemExit(f"{path.name}: quote the text before `, {cut}`, which YAML takes as a key")
    lost = [key for key in (*EVIDENCE, "keys") if key not in content]
    if lost:
        raise SystemExit(f"{path.name}: the table lacks {', '.join(lost)}")
    try:
        count_sources(content)
    except ValueError as error:
        raise SystemExit(f"{path.name}: {error}") from None
    if path.stem == "symptoms":
        for row in content["rows"]:
            row["literals"] = list(required_texts(row["regex"]))
    about = " ".join(
        line.lstrip("# ") for line in text.split("\nas_of:")[0].splitlines() if line.startswith("#")
    )
    sheet = {"columns": [], "rows": []} if "csv" in content else {}
    if sheet:
        columns, *lines = rows_of(path.parent / content["csv"], content.get("types", {}))
        sheet = {"columns": columns, "rows": [tuple(line) for line in lines]}
    content["keys"] = {
        name: key for name, key in content["keys"].items() if name not in FOR_READERS
    }
    kept = {key: flat(value) for key, value in content.items() if key not in FOR_READERS}
    return {"about": about, **kept, **sheet}


def cut_texts(value: Any) -> Iterator[str]:
    """Yield what follows a comma in a text without quotes: a key with spaces, without a value."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if item is None and " " in str(key):
            yield str(key)
        yield from cut_texts(item)
    for item in value if isinstance(value, list) else ():
        yield from cut_texts(item)


def count_sources(content: dict[str, Any]) -> None:
    """Limit the confidence of rows that people wrote to medium if they rest on one source.

    A row with its own source was written by a person, and so was every row of a table that no
    script reads (`read_by`). `sources_count` is how many independent sources it has: 1 if it is
    missing. The table gets `sources_count: 0` if a script reads it.

    Raises:
        ValueError: a row or table claims high confidence with one source.
    """
    if ("read_by" in content) == ("sources_count" in content):
        raise ValueError("a table has read_by, the script that reads it, or sources_count")
    content.setdefault("sources_count", 0)
    if content["sources_count"]:
        check_count(content, "the table")
    shared = [("by", content.get("by", {}).values())]
    lists = [(name, rows) for name, rows in content.items() if name in content["keys"]]
    for name, rows in (*shared, *lists):
        for row in rows:
            if not isinstance(row, dict):
                continue
            about = f"{name}: {next(iter(row.values()), name)}"
            if "source" in row:
                check_count(row, about)
                if row.setdefault("sources_count", 1) == 1 and content["confidence"] == "high":
                    row.setdefault("confidence", "medium")
            elif "sources_count" in row:
                raise ValueError(f"{about}: sources_count without a source")
            elif "threads" in row:
                row["sources_count"] = 1 + len(row["threads"].split(", "))
            elif row.get("confidence") == "high" != content["confidence"]:
                raise ValueError(f"{about}: high confidence needs a source or thread of its own")


def check_count(row: dict[str, Any], about: str) -> None:
    """Refuse high confidence in a row or table that names one source, and counts below 1."""
    count = row.get("sources_count", 1)
    if type(count) is not int or count < 1:
        raise ValueError(f"{about}: sources_count is {count!r}, expected a number from 1 on")
    if count == 1 and row.get("confidence") == "high":
        raise ValueError(
            f"{about}: high confidence needs two independent sources: name them in `source` and "
            "write sources_count, or write confidence: medium"
        )


def rows_of(path: Path, types: dict[str, str]) -> Iterator[list[Any]]:
    """Yield the header and the rows of a CSV.

    A column of type `number` contains numbers, one of type `words` words between spaces.
    """
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader)
        yield header
        for line in reader:
            yield [
                typed(value, types.get(name, "text"))
                for name, value in zip(header, line, strict=True)
            ]


def typed(value: str, kind: str) -> Any:
    """Return a cell as a value of its column's type."""
    if kind == "number":
        return float(value)
    return value.split() if kind == "words" else value


def flat(value: Any) -> Any:
    """Return a value with dates as text and lists of lists of names joined.

    Names are grouped in the tables for readability only.
    """
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: flat(item) for key, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, list) for item in value):
        return sorted(str(name) for group in value for name in group)
    return [flat(item) for item in value] if isinstance(value, list) else value


def body(content: dict[str, Any]) -> str:
    """Return a table's JSON with one row a line."""
    lines = []
    for key, value in sorted(content.items()):
        rows = isinstance(value, list) and value and isinstance(value[0], dict | tuple)
        text = "[\n" + ",\n".join(line(row) for row in value) + "\n]" if rows else line(value)
        lines.append(f"{json.dumps(key)}: {text}")
    return ",\n".join(lines)


def line(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def stale(files: dict[Path, str]) -> list[str]:
    """Return the names of compiled files that differ from the tables or have no table."""
    moved = [
        path.name
        for path, text in files.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    return moved + sorted(path.name for path in PARTS.glob("*") if path not in files)


def main(arguments: list[str]) -> int:
    """Write the compiled facts; with `--check`, exit with 1 if they are stale."""
    tables = FACTS / "tables"
    files = {
        COMPILED: compiled(tables),
        **{PARTS / name: text for name, text in parts(tables).items()},
        DEVICE_SYMPTOMS: device_symptoms(tables),
    }
    if "--check" in arguments:
        moved = stale(files)
        print(
            f"stale: {', '.join(moved)}; run python support/compile_facts.py"
            if moved
            else "facts are up to date"
        )
        return 1 if moved else 0
    PARTS.mkdir(exist_ok=True)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
