"""load_best_model_at_end needs evaluation and saving at the same steps.

## What it does

Compares `eval_strategy`, `save_strategy`, `eval_steps` and `save_steps` under `training.arguments`
as TrainingArguments does.

## Why

The best checkpoint must have been both evaluated and saved. TrainingArguments fails with
"--load_best_model_at_end requires the save and eval strategy to match": by default, checkpoints are
saved every few steps and nothing is evaluated.

## How to fix

Set `eval_strategy` to the value of `save_strategy`, and `save_steps` to a multiple of `eval_steps`.
"""

from __future__ import annotations

from provision.diagnostics import (
    Edit,
    Insert,
    RelatedLocation,
    Replace,
    RouteLocation,
    Severity,
)
from provision.rules.edits import unsafe_fix
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.training.best_model import EVALUATION_KEYS, WHY, find_best_model_mismatch
from provision.rules.training.trainer_arguments import ARGUMENTS_ROUTE


def _check(context: LintContext) -> Findings:
    arguments = context.spec.training.arguments
    if not context.uses_trainer or context.resolved is not None:
        return
    mismatch = find_best_model_mismatch(arguments)
    if mismatch is None:
        return
    name, value = mismatch.field, mismatch.value
    fix = None
    related: tuple[RelatedLocation, ...] = ()
    if name != "save_steps":
        edit: Edit = Insert(ARGUMENTS_ROUTE, name, f'"{value}"')
        if name in arguments:
            edit = Replace(RouteLocation((*ARGUMENTS_ROUTE, name)), f'"{value}"')
        fix = unsafe_fix(f"set `{name}: {value}`", edit)
        keys = [key for key in EVALUATION_KEYS if key in arguments]
        related = (
            related_at((*ARGUMENTS_ROUTE, keys[0]), "evaluation strategy set here") if keys else ()
        )
    yield RULE.diagnostic(
        mismatch.message,
        (*ARGUMENTS_ROUTE, "load_best_model_at_end"),
        why=WHY,
        help=f"set `{name}: {value}`",
        related=related,
        fix=fix,
    )


RULE = Rule(
    id="TRN005",
    name="best-model-needs-evaluation",
    severity=Severity.ERROR,
    sources=(
        "__post_init__ in training_args.py of transformers 4.20.1, 4.57.6 and 5.23.0",
        "zjunlp/DeepKE#394",
        "hiyouga/LlamaFactory#8133",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {load_best_model_at_end: «true»}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {load_best_model_at_end: «true», eval_strategy: epoch, "
        "save_strategy: steps}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {load_best_model_at_end: «true», eval_strategy: steps, "
        "eval_steps: 200}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {load_best_model_at_end: true, eval_strategy: epoch, "
        "save_strategy: epoch}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {load_best_model_at_end: true, eval_strategy: steps, "
        "eval_steps: 250}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {load_best_model_at_end: false}}\n",
    ),
)
