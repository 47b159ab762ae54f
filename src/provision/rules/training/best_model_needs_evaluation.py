"""load_best_model_at_end needs evaluation and saving at the same steps.

## What it does

Compares `eval_strategy`, `save_strategy`, `eval_steps` and `save_steps` under `training.arguments`
as TrainingArguments does.

## Why

The best checkpoint is one that was both evaluated and saved. TrainingArguments ends in
"--load_best_model_at_end requires the save and eval strategy to match": without further arguments
saving goes by steps, and nothing is evaluated.

## How to fix

Give `eval_strategy` the value of `save_strategy`, and make `save_steps` a multiple of `eval_steps`.
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
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.training.trainer_arguments import ARGUMENTS_ROUTE

STEPS = 500
"""save_steps and logging_steps, which eval_steps follows, when they are not given (training_args.py
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
        "TrainingArguments refuses that: the best checkpoint is one that was both evaluated and "
        "saved."
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
            "load_best_model_at_end needs the save and eval strategy to match: saving goes by "
            f"{saving}, evaluation by {evaluation}",
            route,
            why=why,
            help=f"write {name}: {value}",
            related=related_at((*ARGUMENTS_ROUTE, keys[0]), "evaluation is declared here")
            if keys
            else (),
            fix=unsafe_fix(f"write {name}: {value}", edit),
        )
    elif saving == "steps" and _is_no_multiple(save, evaluate):
        yield RULE.diagnostic(
            f"save_steps: {save} is no multiple of eval_steps: {evaluate}",
            route,
            why=why,
            help=f"write save_steps: {-(-save // evaluate) * evaluate}",
        )


def _is_no_multiple(save: Any, evaluate: Any) -> bool:
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
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{arguments: {load_best_model_at_end: true}}\n",
            "true",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
            "training: {arguments: {load_best_model_at_end: true, eval_strategy: epoch, "
            "save_strategy: steps}}\n",
            "true",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
            "training: {arguments: {load_best_model_at_end: true, eval_strategy: steps, "
            "eval_steps: 200}}\n",
            "true",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {load_best_model_at_end: true, eval_strategy: epoch, "
        "save_strategy: epoch}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {load_best_model_at_end: true, eval_strategy: steps, "
        "eval_steps: 250}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{arguments: {load_best_model_at_end: false}}\n",
    ),
)
