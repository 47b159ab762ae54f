"""An argument of Trainer is deprecated in the transformers that is asked for.

## What it does

Looks for arguments whose own text calls them deprecated in the newest transformers that is possible, and for which another one is there in all that are.

## Why

It works today with a warning, and is gone in one of the next releases.

## How to fix

Write the name that takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import At, Diagnostic, Severity
from provision.facts.versions import ordered
from provision.rules.arguments import ARGUMENTS, FIELDS, releases, renaming, successor, there
from provision.rules.rule import Case, Example, Resolved, Rule


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each deprecated argument that another one can stand for."""
    known = releases(case)
    for name in case.spec.training.arguments if known else ():
        row = case.facts.arguments.get(name)
        if (
            row is None
            or not row.deprecated_since
            or name in FIELDS
            or not there(case.facts, row, known[-1])
            or ordered(known[-1]) < ordered(row.deprecated_since)
        ):
            continue
        instead, renamed = successor(case.facts, row, known[0])
        if instead is not None or row.instead:
            yield RULE.found(
                f"transformers {known[-1]} calls {name} deprecated" + (f": {instead} takes its place" if instead else ""),
                (*ARGUMENTS, name),
                at=At.KEY,
                why="One of the next releases will not have it.",
                way_out=f"write {instead}" if instead else row.instead,
                fix=renaming(case, name, instead) if instead and renamed else None,
            )


RULE = Rule(
    id="TRN003",
    name="argument-deprecated",
    severity=Severity.INFO,
    summary="An argument of Trainer is deprecated in the transformers that is asked for.",
    sources=("training_args.py in the transformers wheels on PyPI",),
    page=__doc__,
    check=check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.41.2"]\ntraining: {arguments: {evaluation_strategy: epoch}}\n', "evaluation_strategy"
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: {arguments: {warmup_ratio: 0.1}}\n',
            "warmup_ratio",
            Resolved({"torch": "2.13.0", "transformers": "5.0.0", "accelerate": "1.15.0"}, "3.11", "cpu"),
        ),
    ),
    good=(
        Example('gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.40.2"]\ntraining: {arguments: {evaluation_strategy: epoch}}\n'),
        Example('gpu: none\npython: "3.11"\npackages: ["transformers[torch]==5.0.0"]\ntraining: {arguments: {warmup_steps: 0.1}}\n'),
    ),
)
