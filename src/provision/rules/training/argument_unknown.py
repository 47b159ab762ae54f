"""No transformers release has that argument of Trainer.

## What it does

Looks up each name under `training.arguments` in all arguments that TrainingArguments had since
transformers 4.20, and gives the nearest one.

## Why

`TrainingArguments(...)` ends in "got an unexpected keyword argument", after the environment was
made and the model loaded.

## How to fix

Correct the name. Arguments of a subclass (Seq2SeqTrainingArguments, SFTConfig) belong in the
program: `training.arguments` takes those of TrainingArguments only. An argument of a known subclass
is a warning. If trl is listed, whose classes take many more, a name that resembles no argument of
TrainingArguments is accepted.

`attn_implementation` may stand here, although it is an argument of the model: the model of the
verification is built with it. Your program has to pass it to its own.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.admitted_releases import transformers_releases
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import is_known_dependency
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule, examples
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
    releases = None
    if unknown and context.uses_trainer:
        releases = transformers_releases(context)
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
            yield RULE.diagnostic(
                f"{_OF_THE_MODEL} is an argument of the model: the verification builds its own "
                "with it, and TrainingArguments does not take it",
                (*ARGUMENTS_ROUTE, _OF_THE_MODEL),
                at=RoutePart.KEY,
                severity=Severity.INFO,
                why="What is called in a forward pass is compared with it (R07); your program "
                "passes it to from_pretrained or the configuration.",
                help="pass it to the model in the program, and leave it here",
            )
            continue
        if (row := context.facts.subclass_arguments.get(name)) is not None:
            if not (trl and row.of.endswith(" of trl")):
                yield RULE.diagnostic(
                    f"{row.argument} is an argument of {row.of}, not of TrainingArguments",
                    (*ARGUMENTS_ROUTE, row.argument),
                    at=RoutePart.KEY,
                    severity=Severity.WARNING,
                    why="TrainingArguments takes no other names; those of a subclass belong into "
                    "the program.",
                    help=f"give it to {row.of} in the program, and leave it out here",
                )._replace(source=row.evidence.source)
            continue
        meant = nearest_word(name, possible, 2) if len(name) > 3 else None
        if trl and meant is None:
            continue
        help_text = "correct the name"
        if meant:
            help_text = f"write {meant}"
        elif releases.includes_newer:
            help_text = "correct the name, or leave it out; a newer transformers may have it"
        yield RULE.diagnostic(
            f"TrainingArguments has no argument {name} in any transformers from "
            f"{context.facts.arguments_read[0]} to {context.facts.arguments_read[-1]}",
            (*ARGUMENTS_ROUTE, name),
            at=RoutePart.KEY,
            severity=_severity(beyond=releases.includes_newer or trl, near=meant is not None),
            why="TrainingArguments takes no other names; those of a subclass belong into the "
            "program.",
            help=help_text,
            fix=rename_argument_fix(context, name, meant) if meant else None,
        )


_OF_THE_MODEL = "attn_implementation"


def _severity(*, beyond: bool, near: bool) -> Severity | None:
    if not beyond:
        return None
    return Severity.WARNING if near else Severity.UNKNOWN


RULE = Rule(
    id="TRN002",
    name="argument-unknown",
    severity=Severity.ERROR,
    sources=("training_args.py in the transformers wheels on PyPI",),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: '
            '["transformers[torch]==5.13.1"]\ntraining: {arguments: {learning_rates: '
            "0.1}}\n",
            "learning_rates",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{arguments: {num_train_epoch: 3}}\n",
            "num_train_epoch",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{arguments: {my_own: 3}}\n",
            "my_own",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: '
            "{arguments: {predict_with_generate: true}}\n",
            "predict_with_generate",
            ResolvedSet(
                {"torch": "2.13.0", "transformers": "5.0.0", "accelerate": "1.15.0"}, "3.11", "cpu"
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{arguments: {learning_rate: 0.1, num_train_epochs: 3}}\n",
        'gpu: none\npython: "3.11"\npackages: [transformers>=5, trl]\ntraining: '
        "{arguments: {max_length: 512, packing: true, beta: 0.1}}\n",
        'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {arguments: {my_own: 3}}\n',
    ),
)
