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
from provision.rules.package_requirements import related_line, requested_package
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
)
from provision.rules.training.trainer_arguments import (
    ARGUMENTS_ROUTE,
    find_successor,
    is_in_release,
    rename_argument_fix,
    trainer_releases,
)


def _check(context: LintContext) -> Findings:
    facts = context.facts
    known = trainer_releases(context)
    transformers = requested_package(context, "transformers")
    for name in context.spec.training.arguments if known else ():
        row = facts.arguments.get(name)
        if row is None or is_in_release(facts, row, known[-1]) is not False:
            continue
        fix = None
        is_later = row.first and not row.last
        if is_later and is_in_release(facts, row, facts.arguments_read[-1]) is not False:
            history = f"it came with {row.first}"
            help_text = f"ask for transformers>={row.first}, or leave it out"
        else:
            history = f"the last release with it is {row.last}"
            instead, is_renamed = find_successor(facts, row, known[-1])
            if instead is None:
                help_text = row.instead or f"leave it out, or ask for transformers<={row.last}"
            elif is_renamed:
                help_text = f"write {instead}"
                fix = rename_argument_fix(context, name, instead)
            else:
                help_text = (
                    f"write {instead}, whose values differ, or ask for transformers<={row.last}"
                )
        is_in_none = all(is_in_release(facts, row, release) is False for release in known)
        yield RULE.diagnostic(
            f"transformers {known[-1]} has no argument {name}: {history}",
            (*ARGUMENTS_ROUTE, name),
            at=RoutePart.KEY,
            severity=None if is_in_none else Severity.WARNING,
            why=f"TrainingArguments ends in \"unexpected keyword argument '{name}'\".",
            help=help_text,
            related=related_line(transformers) if transformers else (),
            fix=fix,
        )


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
