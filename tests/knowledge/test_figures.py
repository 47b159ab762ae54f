"""The figures of the corpora, as docs/reference/corpora.md has them."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from provision.facts import load_facts

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"\| (lint|why|suggest): ([^|]+) \| (\d+) of (\d+) \| (\d+) of (\d+) \| (at \w+) \|"
)
TOTALS = {
    "failing": "failing",
    "working": "working",
    "warnings": "working",
    "of": "of other causes",
}
PAGE = (ROOT / "docs/reference/corpora.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    place = importlib.util.spec_from_file_location(
        "measure_knowledge", ROOT / "support" / "measure_knowledge.py"
    )
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    sys.modules[place.name] = module
    place.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def figures(script: ModuleType) -> dict[str, dict[str, Any]]:
    facts = load_facts()
    return {
        "lint": script.measure_lint(facts),
        "why": script.measure_why(facts),
        "suggest": script.measure_suggest(facts),
    }


def test_no_figure_is_worse_than_the_page_says(figures: dict[str, dict[str, Any]]) -> None:
    rows = ROW.findall(PAGE)
    assert len(rows) == 10
    wrong = []
    for command, name, seen, seen_total, held, held_total, bound in rows:
        default = {"lint": "", "why": "errors", "suggest": "cases"}[command]
        total = TOTALS.get(name.split()[0], default)
        expected = (("seen", seen, seen_total), ("held out", held, held_total))
        for half, count, cases in expected:
            counts = figures[command][half]
            assert counts[total] == int(cases), (name, half)
            found = counts[name]
            if found != int(count):
                change = "worse" if (found < int(count)) == (bound == "at least") else "better"
                wrong.append(f"{command}, {name}, {half} half: {count} -> {found}, {change}")
    assert not wrong, "\n".join(wrong)


def test_both_halves_have_cases_of_each_kind(figures: dict[str, dict[str, Any]]) -> None:
    for halves in figures.values():
        for half in halves.values():
            assert sum(half.values()) > 20


def test_a_proposal_with_a_lower_bound_alone_is_counted(script: ModuleType) -> None:
    for line, is_open in (("vllm>=0.33.0", True), ("vllm==0.6.3", False), ("peft>=0.1,<1", False)):
        change = type("Change", (), {"route": ("packages", 0), "now": line})()
        suggestion = type("Suggestion", (), {"changes": (change,)})()
        assert bool(script.open_companions(suggestion)) == is_open, line


@pytest.mark.parametrize(
    "name", ["errors", "errors_second", "errors_third", "specs", "suggestions"]
)
def test_cases_are_whole_and_unique(name: str) -> None:
    path = ROOT / "tests" / "knowledge" / f"{name}.yaml"
    cases = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert [one for one, count in Counter(case["id"] for case in cases).items() if count > 1] == []
    least = {"errors": 100, "errors_second": 150, "errors_third": 60, "specs": 120}
    assert len(cases) >= least.get(name, 40)
    for case in cases:
        thread = case.get("thread") or case.get("source") or ""
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) or case.get("commit"), case["id"]
        assert case.get("cause") or case.get("solved"), case["id"]
        assert name.startswith("errors") or case["spec"]["packages"], case["id"]
