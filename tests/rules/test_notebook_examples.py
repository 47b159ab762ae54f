"""Every rule about notebooks against its own examples: found there and only there, and fixed."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from provision import source
from provision.diagnostics import Applicability, Severity
from provision.facts import Facts
from provision.rules import RULES, load_notebook_rules, notebook, render_rule_page
from tests.rules.notebooks import judge_example, judge_notebook

NOTEBOOK_RULES = load_notebook_rules()
BAD = [(f"{rule.id}-{i}", rule, case) for rule in NOTEBOOK_RULES for i, case in enumerate(rule.bad)]
GOOD = [
    (f"{rule.id}-{i}", rule, case) for rule in NOTEBOOK_RULES for i, case in enumerate(rule.good)
]
RANKS = list(Severity)


def test_a_bad_example_gives_this_finding_alone_at_its_text(
    facts: Facts, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for name, rule, case in BAD:
        with subtests.test(name):
            judged = judge_example(case, facts, tmp_path)
            assert sorted(judged.ids) == sorted((rule.id, *case.other_ids))
            found = judged.one(rule.id)
            assert judged.at(found) == case.at
            assert found.name == rule.name
            assert found.message
            assert found.why.endswith(".")
            assert found.help
            assert found.source
            assert RANKS.index(found.severity) >= RANKS.index(rule.severity)


def test_a_good_example_gives_none(facts: Facts, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for name, rule, case in GOOD:
        with subtests.test(name):
            ids = judge_example(case, facts, tmp_path).ids
            assert sorted(ids) == sorted(case.other_ids)
            assert rule.id not in ids


def test_a_fix_changes_the_notebook(
    facts: Facts, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """A safe fix removes the finding and adds none."""
    safe = set()
    for name, rule, case in BAD:
        judged = judge_example(case, facts, tmp_path)
        fix = judged.one(rule.id).fix
        if fix is None:
            continue
        with subtests.test(name):
            text = judged.source.apply_to_file([fix])
            assert text != judged.source.notebook.text
            again = judge_notebook(text, facts, tmp_path, case.spec, case.resolved)
            assert "BUG000" not in again.ids
            if fix.applicability is Applicability.SAFE:
                safe.add(rule.id)
                assert set(again.ids) < set(judged.ids)
    assert safe == {"NTB001", "NTB005", "NTB009"}


def test_every_rule_is_in_the_list_and_whole(subtests: pytest.Subtests) -> None:
    folder = Path(notebook.__file__).parent
    modules = {
        f"provision.rules.notebook.{path.stem}"
        for path in folder.glob("*.py")
        if "\nRULE = " in path.read_text(encoding="utf-8")
    }
    assert modules == {rule.check.__module__ for rule in NOTEBOOK_RULES}
    for rule in NOTEBOOK_RULES:
        with subtests.test(rule.id):
            assert re.fullmatch(r"NTB\d{3}", rule.id)
            module = import_module(rule.check.__module__).__name__.rpartition(".")[2]
            assert module == rule.name.replace("-", "_")
            page = render_rule_page(rule)
            assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [
                "What it does",
                "Why",
                "How to fix",
                "Found in",
                "Not found in",
                "Sources",
            ]
            assert rule.summary.endswith(".")
            assert all(case.notebook.strip() in page for case in (*rule.bad, *rule.good))


def test_ids_and_names_are_nobody_elses() -> None:
    ids = [rule.id for rule in (*RULES, *NOTEBOOK_RULES, *source.FINDING_KINDS)]
    names = [rule.name for rule in (*RULES, *NOTEBOOK_RULES, *source.FINDING_KINDS)]
    assert len(set(ids)) == len(ids)
    assert len(set(names)) == len(names)
