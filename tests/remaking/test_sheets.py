"""A table is changed where it must be and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from remaking.running import TABLES
from remaking.sheets import rewritten, sheet, written

LISTS = [
    (path, name, key)
    for path in sorted(TABLES.glob("*.yaml"))
    for name, key in yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["keys"].items()
    if path.stem in ("torch", "builds", "transformers", "packages", "cuda")
]
TABLE = """\
# About this table.
as_of: 2026-01-01
sources:
  far: &far "a far place"
rows:
  - {name: one, floor: "1.0",
     source: *far}
  - {name: two, floor: null, parts: {a-b: ">=1"}}
last: [x]
"""


@pytest.mark.parametrize(
    ("path", "name", "key"), LISTS, ids=lambda value: value if isinstance(value, str) else None
)
def test_a_table_written_as_it_is_stays_as_it_is(path: Path, name: str, key: list[str]) -> None:
    text = path.read_text(encoding="utf-8")
    old = sheet(text, name)
    assert rewritten(old, key, [row.values for row in old.rows]) == text


def test_a_changed_cell_leaves_all_else() -> None:
    rows = [
        {"name": "one", "floor": "1.1", "source": "a far place"},
        {"name": "two", "floor": None, "parts": {"a-b": ">=1"}},
    ]
    assert rewritten(sheet(TABLE, "rows"), ["name"], rows) == TABLE.replace(
        '{name: one, floor: "1.0",\n     source: *far}', '{name: one, floor: "1.1", source: *far}'
    )


def test_rows_come_and_go() -> None:
    new = rewritten(
        sheet(TABLE, "rows"),
        ["name"],
        [{"name": "two", "floor": "2"}, {"name": "three", "kinds": ["cu130", "3.10"]}],
    )
    assert new == TABLE.replace(
        '{name: one, floor: "1.0",\n     source: *far}\n  - {name: two, floor: null, '
        'parts: {a-b: ">=1"}}',
        '{name: two, floor: "2"}\n  - {name: three, kinds: [cu130, "3.10"]}',
    )
    assert yaml.safe_load(new)["rows"][1] == {"name": "three", "kinds": ["cu130", "3.10"]}


def test_a_long_row_is_wrapped() -> None:
    row = {"name": "one", **{f"column_{number}": "x" * 40 for number in range(9)}}
    new = rewritten(sheet(TABLE, "rows"), ["name"], [row])
    assert max(len(line) for line in new.splitlines()) <= 160
    assert yaml.safe_load(new)["rows"] == [row]


@pytest.mark.parametrize(
    "value",
    [
        "cu130",
        "2.28",
        ">=3.10",
        "",
        "null",
        "no",
        "1e3",
        "on",
        None,
        3,
        1.5,
        True,
        ["3.9"],
        {"a[b]": "==1", "c": ["d"]},
    ],
)
def test_what_is_written_is_read_back(value: object) -> None:
    assert yaml.safe_load(f"- {{key: {written(value)}}}") == [{"key": value}]


def test_a_comment_between_rows_is_not_lost_silently() -> None:
    with pytest.raises(ValueError, match="comment"):
        sheet(TABLE.replace("  - {name: two", "  # why two\n  - {name: two"), "rows")
