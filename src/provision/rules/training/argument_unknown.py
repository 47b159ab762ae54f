"""No transformers release has an argument of Trainer with that name.

## What it does

Looks up each name under `training.arguments` in all arguments that TrainingArguments had since
transformers 4.20, and suggests the most similar one.

## Why

`TrainingArguments(...)` fails with "got an unexpected keyword argument", after the environment was
created and the model was loaded.

## How to fix

Correct the name. Arguments of a subclass (Seq2SeqTrainingArguments, SFTConfig) belong in the
program: `training.arguments` only takes those of TrainingArguments. An argument of a known subclass
is a warning. If trl is listed, whose classes take many more arguments, a name that is not similar
to an argument of TrainingArguments is accepted.

`attn_implementation` is accepted, although it is an argument of the model: the verification builds
its own model with it. Your program has to pass it to your model.
"""

from __future__ import annotations

from provision.diagnostics import Diagnostic, RoutePart, Severity
from provision.rules.admitted_releases import transformers_releases
from provision.rules.examples import TRAINER_SET
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import is_known_dependency
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.training.trainer_arguments import (
    ARGUMENTS_ROUTE,
    is_in_release,
    rename_argument_fix,
)
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    unknown = [
        name for name in context.spec.training.arguments if name not in context.facts.arguments
    ]
    releases = transformers_releases(context) if unknown and context.uses_trainer else None
    if releases is None:
        return
    newest = releases.known[-1] if releases.known else context.facts.arguments_read[-1]
    possible = [
        name
        for name, row in context.facts.arguments.items()
        if is_in_release(context.facts, row, newest)
    ]
    trl = find_line(context, "trl") is not None or is_known_dependency(context, "trl")
    for name in unknown:
        if name == _OF_THE_MODEL:
            yield _model_argument_finding()
            continue
        if (row := context.facts.subclass_arguments.get(name)) is not None:
            if not (trl and row.of.endswith(" in trl")):
                yield RULE.diagnostic(
                    f"{row.argument} is an argument of {row.of}, not of TrainingArguments",
                    (*ARGUMENTS_ROUTE, row.argument),
                    at=RoutePart.KEY,
                    severity=Severity.WARNING,
                    why=WHY,
                    help=f"pass it to {row.of} in the program, and remove it from the spec",
                    source=row.evidence.source,
                )
            continue
        meant = nearest_word(name, possible, 2) if len(name) > 3 else None
        if trl and meant is None:
            continue
        severity = None
        if releases.includes_newer or trl:
            severity = Severity.WARNING if meant else Severity.UNKNOWN
        help_text = "correct the name"
        if meant:
            help_text = f"use {meant}"
        elif releases.includes_newer:
            help_text = (
                "correct the name or remove the argument, unless a newer transformers has it"
            )
        yield RULE.diagnostic(
            f"TrainingArguments has no argument {name} in any transformers release from "
            f"{context.facts.arguments_read[0]} to {context.facts.arguments_read[-1]}",
            (*ARGUMENTS_ROUTE, name),
            at=RoutePart.KEY,
            severity=severity,
            why=WHY,
            help=help_text,
            fix=rename_argument_fix(context, name, meant) if meant else None,
        )


def _model_argument_finding() -> Diagnostic:
    return RULE.diagnostic(
        f"{_OF_THE_MODEL} is an argument of the model, not of TrainingArguments; only the "
        "verification uses it",
        (*ARGUMENTS_ROUTE, _OF_THE_MODEL),
        at=RoutePart.KEY,
        severity=Severity.INFO,
        why=(
            "The verification builds its own model with it and checks which attention "
            "implementation is used (R07)."
        ),
        help=(
            "keep it, and also pass it to `from_pretrained` or to the model configuration in your "
            "program"
        ),
    )


_OF_THE_MODEL = "attn_implementation"
WHY = (
    "TrainingArguments rejects unknown arguments. If your subclass adds arguments, set "
    "them in the program."
)


RULE = Rule(
    id="TRN002",
    name="argument-unknown",
    severity=Severity.ERROR,
    sources=("training_args.py in the transformers wheels on PyPI",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==5.13.1"]\n'
        "training: {arguments: {«learning_rates»: 0.1}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {«num_train_epoch»: 3}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {«my_own»: 3}}\n",
        example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\n'
            "training: {arguments: {«predict_with_generate»: true}}\n",
            TRAINER_SET,
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {learning_rate: 0.1, num_train_epochs: 3}}\n",
        'gpu: none\npython: "3.11"\npackages: [transformers>=5, trl]\n'
        "training: {arguments: {max_length: 512, packing: true, beta: 0.1}}\n",
        'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {arguments: {my_own: 3}}\n',
    ),
)
