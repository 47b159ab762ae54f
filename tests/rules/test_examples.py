"""Every rule against its own examples: found there and only there, and mended by its fix."""

from __future__ import annotations

import pytest

from provision.diagnostics import Applicability, Severity
from provision.rules import RULES
from tests.rules.conftest import Ask

BAD = [
    (f"{rule.id}-{number}", rule, example)
    for rule in RULES
    for number, example in enumerate(rule.bad)
]
GOOD = [
    (f"{rule.id}-{number}", rule, example)
    for rule in RULES
    for number, example in enumerate(rule.good)
]
RANKS = list(Severity)


def test_a_bad_example_gives_this_finding_alone_with_what_why_and_the_way_out(
    ask: Ask, subtests: pytest.Subtests
) -> None:
    """Alone but for what the example itself says stands beside, and at its text."""
    for name, rule, example in BAD:
        with subtests.test(name):
            judged = ask(example.spec, example.resolved)
            others = [identity for identity in judged.ids if identity != rule.id]
            assert sorted(others) == sorted(example.other_ids)
            found = judged.one(rule.id)
            assert judged.at(found) == example.at
            assert found.name == rule.name
            assert found.message
            assert found.why.endswith(".")
            assert found.help
            assert found.source
            assert RANKS.index(found.severity) >= RANKS.index(rule.severity)


def test_a_good_example_gives_none(ask: Ask, subtests: pytest.Subtests) -> None:
    for name, rule, example in GOOD:
        with subtests.test(name):
            judged = ask(example.spec, example.resolved)
            assert rule.id not in judged.ids
            assert "BUG000" not in judged.ids


def test_a_fix_changes_the_text(ask: Ask, subtests: pytest.Subtests) -> None:
    """Every offered fix can be applied to the text; a safe one also removes the finding and adds
    none.
    """
    safe = set()
    for name, rule, example in BAD:
        judged = ask(example.spec, example.resolved)
        fix = judged.one(rule.id).fix
        if fix is None:
            continue
        with subtests.test(name):
            (text,) = judged.source.apply_fixes([fix]).values()
            assert text != example.spec
            if fix.applicability is Applicability.SAFE:
                safe.add(rule.id)
                again = ask(text, example.resolved)
                assert rule.id not in again.ids
                assert set(again.ids) < set(judged.ids)
    assert {"PKG001", "PKG006", "CUD001", "CUD003"} <= safe
