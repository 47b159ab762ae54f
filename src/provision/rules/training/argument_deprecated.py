"""An argument of Trainer is deprecated in the requested transformers.

## What it does

Looks for arguments whose own text calls them deprecated in the newest transformers that is
possible, and for which another one is there in all that are.

## Why

It works today with a warning, and is gone in one of the next releases.

## How to fix

Write the name that takes its place.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.facts.versions import require_version
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule, examples
from provision.rules.training.trainer_arguments import (
    ARGUMENTS_ROUTE,
    EQUIVALENT_FIELDS,
    find_successor,
    is_in_release,
    rename_argument_fix,
    trainer_releases,
)


def _check(context: LintContext) -> Findings:
    known = trainer_releases(context)
    for name in context.spec.training.arguments if known else ():
        row = context.facts.arguments.get(name)
        newest = known[-1]
        if row is None or not row.deprecated_since or name in EQUIVALENT_FIELDS:
            continue
        if require_version(newest) < require_version(row.deprecated_since):
            continue
        instead, is_renamed = find_successor(context.facts, row, known[0])
        help_text = f"write {instead}" if instead else row.instead
        if not help_text or not is_in_release(context.facts, row, newest):
            continue
        yield RULE.diagnostic(
            f"transformers {newest} calls {name} deprecated"
            + (f": {instead} takes its place" if instead else ""),
            (*ARGUMENTS_ROUTE, name),
            at=RoutePart.KEY,
            why="One of the next releases will not have it.",
            help=help_text,
            fix=rename_argument_fix(context, name, instead) if instead and is_renamed else None,
        )


RULE = Rule(
    id="TRN003",
    name="argument-deprecated",
    severity=Severity.INFO,
    sources=("training_args.py in the transformers wheels on PyPI",),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: '
            '["transformers[torch]==4.41.2"]\ntraining: {arguments: {evaluation_strategy: '
            "epoch}}\n",
            "evaluation_strategy",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: '
            "{arguments: {warmup_ratio: 0.1}}\n",
            "warmup_ratio",
            ResolvedSet(
                {"torch": "2.13.0", "transformers": "5.0.0", "accelerate": "1.15.0"}, "3.11", "cpu"
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: '
        '["transformers[torch]==4.40.2"]\ntraining: {arguments: {evaluation_strategy: '
        "epoch}}\n",
        'gpu: none\npython: "3.11"\npackages: '
        '["transformers[torch]==5.0.0"]\ntraining: {arguments: {warmup_steps: 0.1}}\n',
    ),
)
