"""A folder has fewer ranks than the spec requests.

## What it does

Compares `ranks` of folder targets with the ranks that a folder has.

## Why

`plan` refuses the target.

## How to fix

Write a smaller number.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.rules.rule import Example, LintContext, Rule, examples
from provision.target_facts import find_target_refusals

_SPEC = (
    'gpu: none\npython: "3.11"\npackages: []\n'
    "targets: {{machine: {{kind: folder, service: 'http://127.0.0.1:1', ranks: {ranks}}}}}\n"
)


def check(context: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each target with too many ranks."""
    for target in context.targets:
        for refusal in find_target_refusals(context.spec, target.name, context.facts):
            if refusal.rule == RULE.id:
                yield RULE.diagnostic(
                    refusal.why, refusal.route, why="plan refuses it.", help=refusal.hint
                )


RULE = Rule(
    id="FLD001",
    name="too-many-ranks",
    severity=Severity.ERROR,
    sources=("the folder service",),
    check=check,
    bad=(Example(_SPEC.format(ranks=3), "3"),),
    good=examples(_SPEC.format(ranks=2)),
)
