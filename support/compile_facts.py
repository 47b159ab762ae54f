"""Compile the fact tables (YAML, for people) into the one JSON file that the program loads; `--check` only tells whether it is up to date."""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any

import yaml

FACTS = Path(__file__).parents[1] / "src" / "provision" / "facts"
COMPILED = FACTS / "compiled.json"
EVIDENCE = ("source", "as_of", "confidence")


def compiled(folder: Path) -> str:
    """Return the compiled form of all tables in `folder`: sorted keys, one row a line, so that a change of a fact is a change of a line."""
    tables = {path.stem: table(path) for path in sorted(folder.glob("*.yaml"))}
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {{\n{body(content)}\n}}" for name, content in tables.items()) + "\n}\n"


def table(path: Path) -> dict[str, Any]:
    """Return one table; every row that stands in it ends up with its own or the table's evidence."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    lost = [key for key in EVIDENCE if key not in content]
    if lost:
        raise SystemExit(f"{path.name}: the table lacks {', '.join(lost)}")
    return {key: flat(value) for key, value in content.items()}


def flat(value: Any) -> Any:
    """Return `value` with dates as text and lists of lists of names joined (names are grouped for the reader only)."""
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
        rows = isinstance(value, list) and value and isinstance(value[0], dict)
        text = "[\n" + ",\n".join(line(row) for row in value) + "\n]" if rows else line(value)
        lines.append(f"{json.dumps(key)}: {text}")
    return ",\n".join(lines)


def line(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def main(arguments: list[str]) -> int:
    """Write the compiled facts, or with `--check` exit 1 when they are stale."""
    text = compiled(FACTS / "tables")
    if "--check" in arguments:
        fresh = COMPILED.is_file() and COMPILED.read_text(encoding="utf-8") == text
        print("facts are up to date" if fresh else "compiled.json is stale: run python support/compile_facts.py")
        return 0 if fresh else 1
    COMPILED.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
