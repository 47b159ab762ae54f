"""The words that `check` replaces are words of rules: a rule with other words is noticed here."""

from __future__ import annotations

from pathlib import Path

from provision.diagnostics import Diagnostic
from provision.facts import load_facts
from provision.imports.imported_source import SPEC_WORDS
from provision.rules import RULES
from tests.rules.conftest import judge_text


def test_every_replaced_phrase_is_one_of_a_rule(tmp_path: Path) -> None:
    facts = load_facts()
    texts: set[str] = set()
    for rule in RULES:
        for example in rule.bad:
            for finding in judge_text(example.spec, tmp_path, facts, example.resolved).findings:
                texts.update(_texts(finding))
    unused = [
        pattern.pattern
        for pattern, _ in SPEC_WORDS
        if not any(pattern.search(text) for text in texts)
    ]
    assert unused == []


def _texts(finding: Diagnostic) -> tuple[str, ...]:
    title = finding.fix.title if finding.fix is not None else ""
    return finding.message, finding.why, finding.help, title
