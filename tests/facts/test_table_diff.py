"""`facts diff` and `facts stale`: each row that differs, and rows that were read long ago."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.facts import COMPILED_TABLES
from provision.facts.table_diff import list_stale
from provision.facts.table_lookup import load_tables
from tests.rig import Bench


@pytest.fixture
def old(tmp_path: Path) -> Path:
    shutil.copy(COMPILED_TABLES, tmp_path / "compiled.json")
    shutil.copytree(COMPILED_TABLES.parent / "on_demand", tmp_path / "on_demand")
    return tmp_path / "compiled.json"


def rows_of(bench: Bench, old: Path) -> list[tuple[str, str, list[str], bool, bool]]:
    done = bench.run("facts", "diff", str(old), "--output-format", "json")
    assert done.returncode == 0, done.stderr
    return [
        (row["table"], row["key"], row["fields"], row["old"] is None, row["new"] is None)
        for row in json.loads(done.stdout)["rows"]
    ]


def change(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_text(json.dumps(content))


def test_the_same_facts_do_not_differ(bench: Bench, old: Path) -> None:
    assert rows_of(bench, old) == []
    assert "No changes." in bench.run("facts", "diff", str(old)).stdout


def test_a_changed_an_added_and_a_removed_row_are_named(bench: Bench, old: Path) -> None:
    def edit(content: dict[str, Any]) -> None:
        rows = content["pythons"]["rows"]
        content["pythons"]["rows"] = json.loads(json.dumps(rows).replace("2027-10", "2028-01"))

    change(old, edit)
    assert rows_of(bench, old) == [("pythons", "3.11", ["end_of_life"], False, False)]
    assert "~ pythons:3.11: end_of_life" in bench.run("facts", "diff", str(old)).stdout


def test_tables_that_the_old_file_lacks_are_not_reported_as_added(bench: Bench, old: Path) -> None:
    shutil.rmtree(old.parent / "on_demand")
    assert rows_of(bench, old) == []


def test_a_file_of_another_kind_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    done = bench.run("facts", "diff", str(tmp_path / "x.json"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_rows_read_long_ago_are_listed_with_the_oldest() -> None:
    tables = load_tables(COMPILED_TABLES)
    assert list(list_stale(tables, "2026-11-28T00:00:00Z", 36500)) == []
    stale = {one.table: one for one in list_stale(tables, "2027-12-01T00:00:00Z", 180)}
    assert set(stale) == set(tables)
    assert stale["pythons"].rows == len(tables["pythons"].rows)
    assert stale["pythons"].age_days > 300


def test_the_command_lists_them(bench: Bench) -> None:
    done = bench.run("facts", "stale", "--days", "99999")
    assert "No row's source was last read more than 99999 days ago." in done.stdout
    document = json.loads(bench.run("facts", "stale", "--output-format", "json").stdout)
    assert document["days"] == 180
