"""Plans and rows of facts on terminals of any width."""

from __future__ import annotations

import pytest

from provision.facts import COMPILED_TABLES
from provision.facts.consequences import ExplainedRow
from provision.facts.table_lookup import find_rows, load_tables
from provision.plan import Action, Operation, Plan, Verification
from provision.views.facts import render_rows
from provision.views.plan import render_text

NOTE = "it costs 0.85 USD an hour from its creation until it is destroyed, also while it is stopped"


def plan() -> Plan:
    actions = (
        Action(Operation.CREATE, "spec/here", "environment", "environment spec.here-0123", NOTE),
        Action(Operation.CREATE, "spec/there", "instance", "instance x", "new", notes=(NOTE,)),
    )
    verification = Verification(True, "quick", "the environment changes", "on this device")
    return Plan(actions, {"here": verification}, "", "", "", 0)


@pytest.mark.parametrize("width", [50, 80, 200])
def test_a_plan_wraps_between_words(width: int) -> None:
    text = render_text(plan(), "spec.lock: 2 packages locked", False, width, {"spec/gone": NOTE})
    assert max(map(len, text.splitlines())) <= width
    whole = render_text(plan(), "spec.lock: 2 packages locked", False, 10_000, {"spec/gone": NOTE})
    assert text.split() == whole.split()
    assert len(whole.splitlines()) == 11


def test_the_newest_facts_come_first_and_the_oldest_are_counted() -> None:
    tables = load_tables(COMPILED_TABLES)
    rows = tuple(ExplainedRow(row, 1) for row in find_rows(tables, "vllm"))
    text = render_rows(rows, False, 100)
    first = next(row.row.key for row in reversed(rows) if row.row.table == "packages.runs")
    assert f"packages.runs:{first}\n" in text
    assert f"(+{len(rows) - 12} older rows: --output-format json)" in text
