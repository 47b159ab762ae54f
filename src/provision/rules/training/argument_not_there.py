"""The requested transformers has no such argument of Trainer.

## What it does

Looks up each name under `training.arguments` in the arguments that TrainingArguments had from
transformers 4.20 to the newest release in the facts.

## Why

`TrainingArguments(...)` ends in "got an unexpected keyword argument". transformers 5 removed some
thirty names that tutorials use: evaluation_strategy, no_cuda, overwrite_output_dir,
per_gpu_train_batch_size, warmup_ratio.

## How to fix

Write the name that took its place, or stay with a transformers release that has it.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.facts.schema_packages import TrainingArgument
from provision.rules.package_requirements import requested_package
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.rules.training.trainer_arguments import (
    ARGUMENTS_ROUTE,
    find_successor,
    is_in_release,
    rename_argument_fix,
    trainer_releases,
)


def _check(context: LintContext) -> Findings:
    known = trainer_releases(context)
    for name in context.spec.training.arguments if known else ():
        row = context.facts.arguments.get(name)
        if row is not None and is_in_release(context.facts, row, known[-1]) is False:
            newest = known[-1]
            later = (
                bool(row.first)
                and is_in_release(context.facts, row, context.facts.arguments_read[-1]) is not False
                and not row.last
            )
            instead, renamed = (
                (None, False) if later else find_successor(context.facts, row, newest)
            )
            transformers = requested_package(context, "transformers")
            was = (
                f"it came with {row.first}" if later else f"the last release with it is {row.last}"
            )
            yield RULE.diagnostic(
                f"transformers {newest} has no argument {row.argument}: {was}",
                (*ARGUMENTS_ROUTE, row.argument),
                at=RoutePart.KEY,
                severity=None
                if all(is_in_release(context.facts, row, release) is False for release in known)
                else Severity.WARNING,
                why=f"TrainingArguments ends in \"unexpected keyword argument '{row.argument}'\".",
                help=_help(row, instead, later=later, renamed=renamed),
                related=related_at(transformers.route, "transformers asked for here")
                if transformers and transformers.package
                else (),
                fix=rename_argument_fix(context, row.argument, instead)
                if instead and renamed
                else None,
            )


def _help(row: TrainingArgument, instead: str | None, *, later: bool, renamed: bool) -> str:
    if later:
        return f"ask for transformers>={row.first}, or leave it out"
    if instead is None:
        return row.instead or f"leave it out, or ask for transformers<={row.last}"
    if renamed:
        return f"write {instead}"
    return f"write {instead}, whose values differ, or ask for transformers<={row.last}"


RULE = Rule(
    id="TRN001",
    name="argument-not-there",
    severity=Severity.ERROR,
    sources=(
        "training_args.py in the transformers wheels on PyPI",
        "huggingface/course#987",
        "ROCm/MAD#136",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{arguments: {evaluation_strategy: epoch}}\n",
            "evaluation_strategy",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: '
            '["transformers[torch]==5.13.1"]\ntraining: {arguments: {overwrite_output_dir: '
            "true}}\n",
            "overwrite_output_dir",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: '
            '["transformers[torch]==4.40.2"]\ntraining: {arguments: {eval_strategy: '
            "epoch}}\n",
            "eval_strategy",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: '
            "{arguments: {no_cuda: true}}\n",
            "no_cuda",
            ResolvedSet(
                {"torch": "2.13.0", "transformers": "5.0.0", "accelerate": "1.15.0"}, "3.11", "cpu"
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{arguments: {eval_strategy: epoch, warmup_steps: 10}}\n",
        'gpu: none\npython: "3.11"\npackages: '
        '["transformers[torch]==4.57.6"]\ntraining: {arguments: {overwrite_output_dir: '
        "true}}\n",
        'gpu: none\npython: "3.11"\npackages: '
        '["transformers[torch]==4.41.2"]\ntraining: {arguments: {eval_strategy: '
        "epoch}}\n",
        'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {framework: torch, '
        "arguments: {evaluation_strategy: epoch}}\n",
    ),
)
