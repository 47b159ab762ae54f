"""An argument of Trainer is deprecated in the requested transformers.

## What it does

Looks for arguments that the newest possible transformers documents as deprecated, if a replacement
exists in all possible releases.

## Why

The argument works today with a warning, and a coming release will remove it.

## How to fix

Use the replacement that the finding names.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.facts.versions import require_version
from provision.rules.examples import TRAINER_SET
from provision.rules.rule import Findings, LintContext, Rule, example, examples
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
        help_text = f"use {instead}" if instead else row.instead
        if not help_text or not is_in_release(context.facts, row, newest):
            continue
        yield RULE.diagnostic(
            f"{name} is deprecated in transformers {newest}"
            + (f": {instead} replaces it" if instead else ""),
            (*ARGUMENTS_ROUTE, name),
            at=RoutePart.KEY,
            why="A coming release will remove it.",
            help=help_text,
            fix=rename_argument_fix(context, name, instead) if instead and is_renamed else None,
        )


RULE = Rule(
    id="TRN003",
    name="argument-deprecated",
    severity=Severity.INFO,
    sources=("training_args.py in the transformers wheels on PyPI",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.41.2"]\n'
        "training: {arguments: {«evaluation_strategy»: epoch}}\n",
        example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\n'
            "training: {arguments: {«warmup_ratio»: 0.1}}\n",
            TRAINER_SET,
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.40.2"]\n'
        "training: {arguments: {evaluation_strategy: epoch}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==5.0.0"]\n'
        "training: {arguments: {warmup_steps: 0.1}}\n",
    ),
)
