"""Finds the page of a finding by its id or name."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from provision.errors import CheckFailed
from provision.rules import (
    Rule,
    load_notebook_rules,
    load_registered_rules,
    render_rule_page,
)
from provision.source import FINDING_KINDS, FindingKind
from provision.spelling import nearest_words, normalize_word
from provision.views.rule_page import RulePage

if TYPE_CHECKING:
    from provision.agent.probe.model import Check

_BUG = (
    "A rule failed while checking the spec. This is a bug in provision, not in the spec: the "
    "problem that this rule looks for was not checked. All other rules ran."
)
_AREA, _MOST = 3, 3
"""The letters of an area such as PKG, and the number of suggestions."""


def find_page(word: str) -> RulePage:
    """Return the page of an id (PKG001) or a name (trainer-needs-accelerate).

    Raises:
        CheckFailed: there is no such page.
    """
    pages = all_pages()
    for page in pages:
        if normalize_word(word) in (normalize_word(page.id), normalize_word(page.name)):
            return page
    if check := _check(word):
        hint = (
            "`provision report -v` shows its result and the reason; `provision verify --only "
            f"{check.id}` runs it again"
        )
        raise CheckFailed(
            f"{check.id} is a check of `provision verify`, not a lint finding: {check.title}",
            hint=hint,
        )
    hint = "use the id at the start of a finding, as in error[PKG001]"
    if similar := _similar_names(word, pages):
        hint = f"did you mean {' or '.join(filter(None, (', '.join(similar[:-1]), similar[-1])))}?"
    raise CheckFailed(f"there is no finding called {word[:64]}", hint=hint)


def _similar_names(word: str, pages: tuple[RulePage, ...]) -> tuple[str, ...]:
    """Return up to three ids or names: the same number, the same beginning, or similar words."""
    ids, names = ([page.id for page in pages], [page.name for page in pages])
    begun = [i for i in ids if len(word) >= _AREA and i.startswith(word.upper())]
    if parts := re.fullmatch(r"([A-Z]{3})-?(\d{1,4})", word.upper()):
        begun = [i for i in ids if i == f"{parts[1]}{int(parts[2]):03}"] + begun
    if len(word) > _AREA:
        begun += [name for name in names if normalize_word(word) in normalize_word(name)]
    return tuple(dict.fromkeys(begun))[:_MOST] or nearest_words(word, [*names, *ids], _MOST)


def _check(word: str) -> Check | None:
    from provision.agent.probe.checks import CHECKS  # here: most words are of a finding

    return next((check for check in CHECKS if check.id == word.upper().partition(":")[0]), None)


@cache
def all_pages() -> tuple[RulePage, ...]:
    """Return the pages of all rules, all findings about text and shape, and our own faults."""
    bug = FindingKind("BUG000", "rule-failed", _BUG)
    return (
        *map(_rule_page, load_registered_rules()),
        *map(_rule_page, load_notebook_rules()),
        *map(_finding_page, (*FINDING_KINDS, bug)),
    )


def _rule_page(rule: Rule[Any]) -> RulePage:
    markdown = render_rule_page(rule)
    what = re.search(r"^## What it does\n\n(.+?)\n\n", markdown, re.MULTILINE | re.DOTALL)
    description = " ".join(what[1].split()) if what else rule.summary
    bad, good = (
        tuple(example.notebook or example.spec for example in examples)
        for examples in (rule.bad, rule.good)
    )
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
