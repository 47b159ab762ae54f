"""What a finding's id or name stands for."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from provision.errors import CheckFailed
from provision.rules import RULES, Rule, render_rule_page
from provision.source import FINDING_KINDS, FindingKind
from provision.source.suggestions import nearest_words, normalize_word
from provision.views.rule_page import RulePage

if TYPE_CHECKING:
    from provision.agent.probe.model import Check

_BUG = (
    "A rule failed while it looked at the spec. This is a fault in provision, not in the spec: "
    "what the rule looks for was not checked, all others were."
)


def find_page(word: str) -> RulePage:
    """Return the page that an id (PKG001) or a name (trainer-needs-accelerate) stands for; raises
    Failed with the nearest when there is none.
    """
    known = all_pages()
    for one in known:
        if normalize_word(word) in (normalize_word(one.id), normalize_word(one.name)):
            return one
    if check := _check(word):
        hint = (
            "`provision report -v` shows what it found and why; `provision verify --only "
            f"{check.id}` asks it again"
        )
        raise CheckFailed(
            f"{check.id} is no finding but a check of a verification: {check.title}", hint=hint
        )
    near = nearest_words(word, [name for one in known for name in (one.name, one.id)], limit=3)
    hint = (
        f"did you mean {_either(near)}?"
        if near
        else "every finding begins with its id, as in: error[PKG001]"
    )
    raise CheckFailed(f"no finding is called {word[:64]}", hint=hint)


def _check(word: str) -> Check | None:
    from provision.agent.probe.checks import CHECKS  # here: most words are of a finding

    return next((check for check in CHECKS if check.id == word.upper().partition(":")[0]), None)


@cache
def all_pages() -> tuple[RulePage, ...]:
    """Return the pages of all rules, of all findings about a spec's text and shape, and of our own
    faults.
    """
    bug = FindingKind("BUG000", "rule-failed", _BUG)
    return (*map(_rule_page, RULES), *map(_finding_page, (*FINDING_KINDS, bug)))


def _rule_page(rule: Rule) -> RulePage:
    markdown = render_rule_page(rule)
    what = re.search(r"^## What it does\n\n(.+?)\n\n", markdown, re.MULTILINE | re.DOTALL)
    description = " ".join(what[1].split()) if what else rule.summary
    bad, good = (tuple(example.spec for example in examples) for examples in (rule.bad, rule.good))
    return RulePage(
        rule.id,
        rule.name,
        rule.severity,
        rule.summary,
        description,
        markdown,
        rule.sources,
        bad,
        good,
    )


def _finding_page(kind: FindingKind) -> RulePage:
    markdown = f"# {kind.id} {kind.name}\n\nSeverity: {kind.severity.value}\n\n{kind.explanation}\n"
    return RulePage(kind.id, kind.name, kind.severity, kind.explanation, kind.explanation, markdown)


def _either(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
