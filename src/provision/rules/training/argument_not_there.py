"""The requested transformers does not have an argument of Trainer.

## What it does

Looks up each name under `training.arguments` in the arguments that TrainingArguments had from
transformers 4.20 to the newest release in the facts.

## Why

`TrainingArguments(...)` fails with "got an unexpected keyword argument". transformers 5 removed
about thirty names that tutorials use: evaluation_strategy, no_cuda, overwrite_output_dir,
per_gpu_train_batch_size, warmup_ratio.

## How to fix

Use the name that replaced it, or a transformers release that has the argument.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.examples import TRAINER_SET
from provision.rules.package_requirements import related_line, requested_package
from provision.rules.rule import Findings, LintContext, Rule, example, examples
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
            history = f"it was added in {row.first}"
            help_text = f"use transformers>={row.first}, or remove the argument"
        else:
            history = f"it was removed after {row.last}"
            instead, is_renamed = find_successor(facts, row, known[-1])
            if instead is None:
                help_text = row.instead or f"remove the argument, or use transformers<={row.last}"
            elif is_renamed:
                help_text = f"use {instead}"
                fix = rename_argument_fix(context, name, instead)
            else:
                help_text = (
                    f"use {instead}, which takes different values, or use transformers<={row.last}"
                )
        is_in_none = all(is_in_release(facts, row, release) is False for release in known)
        yield RULE.diagnostic(
            f"transformers {known[-1]} has no argument {name}: {history}",
            (*ARGUMENTS_ROUTE, name),
            at=RoutePart.KEY,
            severity=None if is_in_none else Severity.WARNING,
            why=f"TrainingArguments fails with \"unexpected keyword argument '{name}'\".",
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
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {«evaluation_strategy»: epoch}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==5.13.1"]\n'
        "training: {arguments: {«overwrite_output_dir»: true}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.40.2"]\n'
        "training: {arguments: {«eval_strategy»: epoch}}\n",
        example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\n'
            "training: {arguments: {«no_cuda»: true}}\n",
            TRAINER_SET,
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {eval_strategy: epoch, warmup_steps: 10}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.57.6"]\n'
        "training: {arguments: {overwrite_output_dir: true}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.41.2"]\n'
        "training: {arguments: {eval_strategy: epoch}}\n",
        'gpu: none\npython: "3.11"\npackages: [torch]\n'
        "training: {framework: torch, arguments: {evaluation_strategy: epoch}}\n",
    ),
)
