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

from typing import Any

from provision.diagnostics import (
    Edit,
    Insert,
    Replace,
    RouteLocation,
    Severity,
)
from provision.rules.edits import unsafe_fix
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.training.trainer_arguments import ARGUMENTS_ROUTE

STEPS = 500
"""Default of save_steps and logging_steps; eval_steps defaults to logging_steps (training_args.py
of 4.57.6 and 5.23.0).
"""


def _check(context: LintContext) -> Findings:
    arguments = context.spec.training.arguments
    if arguments.get("load_best_model_at_end") is not True or not context.uses_trainer:
        return
    if context.resolved is not None:
        return
    route = (*ARGUMENTS_ROUTE, "load_best_model_at_end")
    why = (
        "TrainingArguments raises an error: the best checkpoint must have been both evaluated "
        "and saved."
    )
    keys = [name for name in ("eval_strategy", "evaluation_strategy") if name in arguments]
    evaluation = str(arguments[keys[0]]) if keys else "no"
    saving = str(arguments.get("save_strategy", "steps"))
    save = arguments.get("save_steps", STEPS)
    evaluate = arguments.get("eval_steps", arguments.get("logging_steps", STEPS))
    if saving not in ("best", evaluation):
        name = "save_strategy"
        value = evaluation
        if evaluation == "no":
            name = "eval_strategy"
            value = saving
        edit: Edit = Insert(ARGUMENTS_ROUTE, name, f'"{value}"')
        if name in arguments:
            edit = Replace(RouteLocation((*ARGUMENTS_ROUTE, name)), f'"{value}"')
        yield RULE.diagnostic(
            "load_best_model_at_end needs equal strategies for saving and evaluation, but "
            f"save_strategy is {saving} and eval_strategy is {evaluation}",
            route,
            why=why,
            help=f"set {name}: {value}",
            related=related_at((*ARGUMENTS_ROUTE, keys[0]), "evaluation set here") if keys else (),
            fix=unsafe_fix(f"set {name}: {value}", edit),
        )
    elif saving == "steps" and _is_mismatch(save, evaluate):
        yield RULE.diagnostic(
            f"save_steps: {save} is not a multiple of eval_steps: {evaluate}",
            route,
            why=why,
            help=f"set save_steps: {-(-save // evaluate) * evaluate}",
        )


def _is_mismatch(save: Any, evaluate: Any) -> bool:
    """Return whether both are integers and the first is not a multiple of the second."""
    if type(save) is not int or type(evaluate) is not int:
        return False
    return evaluate > 0 and save % evaluate != 0


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
