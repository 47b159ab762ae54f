"""The rules against what people met outside: every row of outside_cases.yaml, each with its source."""  # noqa: E501

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.diagnostics import Severity
from provision.rules import RULES
from tests.rules.conftest import Ask

ROWS: list[dict[str, Any]] = yaml.load(
    Path(__file__).with_name("outside_cases.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
IDS = {rule.id for rule in RULES}


@pytest.mark.parametrize(
    "row",
    ROWS,
    ids=lambda row: f"{row['source']}: {row['spec']['gpu']}, {', '.join(row['expect']) or 'works'}",
)
def test_the_rules_say_what_was_met(row: dict[str, Any], ask: Ask) -> None:
    judged = ask(yaml.safe_dump(row["spec"], sort_keys=False))
    assert set(row["expect"]) <= set(judged.ids)
    if not row["expect"]:
        assert [
            finding.message for finding in judged.findings if finding.severity is Severity.ERROR
        ] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["source"])
def test_a_row_is_whole(row: dict[str, Any]) -> None:
    assert set(row) == {"source", "what", "spec", "expect"}
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+|https://\S+", row["source"])
    assert row["what"]
    assert set(row["expect"]) <= IDS


def test_no_row_stands_twice() -> None:
    said = [yaml.safe_dump(row["spec"]) for row in ROWS]
    assert len(set(said)) == len(said)


def test_both_kinds_are_there() -> None:
    """What works is as much a case as what fails: a rule that always spoke would pass on the
    others.
    """
    works = [row for row in ROWS if not row["expect"]]
    assert len(works) >= len(ROWS) // 4
