"""What a finding's id or name stands for."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from provision.diagnostics import Severity
from provision.errors import Failed
from provision.rules import RULES, Rule, explain
from provision.source import FINDINGS, Finding
from provision.source.suggesting import fold, nearest
from provision.views.pages import Page

if TYPE_CHECKING:
    from provision.probe.values import Check

_BUG = "A rule failed while it looked at the spec. This is a fault in provision, not in the spec: what the rule looks for was not checked, all others were."


def page(word: str) -> Page:
    """Return the page that an id (PKG001) or a name (trainer-needs-accelerate) stands for; raises Failed with the nearest when there is none."""
    known = pages()
    for one in known:
        if fold(word) in (fold(one.id), fold(one.name)):
            return one
    if check := _check(word):
        hint = f"`provision report -v` shows what it found and why; `provision verify --only {check.id}` asks it again"
        raise Failed(f"{check.id} is no finding but a check of a verification: {check.title}", hint=hint)
    near = nearest(word, [name for one in known for name in (one.name, one.id)], most=3)
    hint = f"did you mean {_either(near)}?" if near else "every finding begins with its id, as in: error[PKG001]"
    raise Failed(f"no finding is called {word[:64]}", hint=hint)


def _check(word: str) -> Check | None:
    from provision.probe.checks import CHECKS  # here: most words are of a finding

    return next((check for check in CHECKS if check.id == word.upper().partition(":")[0]), None)


@cache
def pages() -> tuple[Page, ...]:
    """Return the pages of all rules, of all findings about a spec's text and shape, and of our own faults."""
    bug = Finding("BUG000", "rule-failed", Severity.ERROR, _BUG)
    return (*map(_of_rule, RULES), *map(_of_finding, (*FINDINGS, bug)))


def _of_rule(rule: Rule) -> Page:
    markdown = explain(rule)
    what = re.search(r"^## What it does\n\n(.+?)\n\n", markdown, re.MULTILINE | re.DOTALL)
    description = " ".join(what[1].split()) if what else rule.summary
    bad, good = (tuple(example.spec for example in examples) for examples in (rule.bad, rule.good))
    return Page(rule.id, rule.name, rule.severity, rule.summary, description, markdown, rule.sources, bad, good)


def _of_finding(kind: Finding) -> Page:
    markdown = f"# {kind.id} {kind.name}\n\nSeverity: {kind.severity.value}\n\n{kind.explanation}\n"
    return Page(kind.id, kind.name, kind.severity, kind.explanation, kind.explanation, markdown)


def _either(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
