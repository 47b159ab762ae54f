"""Every rule against its own examples: found there and only there, and mended by its fix."""

from __future__ import annotations

import pytest

from provision.diagnostics import Applicability, Severity
from provision.rules import RULES, Example, Rule
from tests.rules.conftest import Ask

BAD = [pytest.param(rule, example, id=f"{rule.id}-{number}") for rule in RULES for number, example in enumerate(rule.bad)]
GOOD = [pytest.param(rule, example, id=f"{rule.id}-{number}") for rule in RULES for number, example in enumerate(rule.good)]
RANKS = list(Severity)


@pytest.mark.parametrize(("rule", "example"), BAD)
def test_a_bad_example_gives_this_finding_alone_at_its_text(rule: Rule, example: Example, ask: Ask) -> None:
    """Alone but for what the example itself says stands beside."""
    judged = ask(example.spec, example.resolved)
    assert sorted(judged.ids) == sorted((rule.id, *example.beside))
    assert judged.at(judged.one(rule.id)) == example.at


@pytest.mark.parametrize(("rule", "example"), BAD)
def test_a_finding_says_what_why_and_the_way_out(rule: Rule, example: Example, ask: Ask) -> None:
    found = ask(example.spec, example.resolved).one(rule.id)
    assert found.name == rule.name
    assert found.message
    assert found.why.endswith(".")
    assert found.help
    assert found.source
    assert RANKS.index(found.severity) >= RANKS.index(rule.severity)


@pytest.mark.parametrize(("rule", "example"), GOOD)
def test_a_good_example_gives_none(rule: Rule, example: Example, ask: Ask) -> None:
    judged = ask(example.spec, example.resolved)
    assert rule.id not in judged.ids
    assert "BUG000" not in judged.ids


@pytest.mark.parametrize(("rule", "example"), BAD)
def test_a_fix_changes_the_text(rule: Rule, example: Example, ask: Ask) -> None:
    """Every offered fix can be applied to the text; a safe one also removes the finding and adds none."""
    judged = ask(example.spec, example.resolved)
    fix = judged.one(rule.id).fix
    if fix is None:
        return
    (text,) = judged.source.edited([fix]).values()
    assert text != example.spec
    again = ask(text, example.resolved)
    assert rule.id not in again.ids or fix.applicability is not Applicability.SAFE
    if fix.applicability is Applicability.SAFE:
        assert set(again.ids) < set(judged.ids)


def test_some_examples_have_safe_fixes(ask: Ask) -> None:
    """Keeps the test above honest: were all fixes dropped, it would pass on nothing."""
    safe = {rule.id for rule in RULES for example in rule.bad if (fix := ask(example.spec, example.resolved).one(rule.id).fix) and fix.applicability == "safe"}
    assert {"PKG001", "PKG006", "CUD001", "CUD003"} <= safe
