"""An argument of Trainer repeats or contradicts a field of training.

## What it does

Compares `bf16`, `fp16`, `tf32`, `per_device_train_batch_size`, `optim`, `gradient_checkpointing`,
`dataloader_num_workers` and `torch_compile` under `training.arguments` with `precision`,
`batch_size`, `optimizer` and the other fields of `training`.

## Why

The fields are what the rules, the memory estimate and the verification go by. With `bf16: true`
among the arguments and no `precision: bf16`, they judge another training than the one that runs.
With both `bf16` and `fp16`, TrainingArguments ends in "At most one of fp16 and bf16 can be True,
but not both".

`tf32` is accepted together with bf16 and fp16: it applies to the rest, in 32 bits.

## How to fix

Say it in the field, and leave the argument out.
"""

from __future__ import annotations

from typing import Any

from provision.diagnostics import Diagnostic, Insert, RoutePart, Severity
from provision.rules.edits import unsafe_fix, yaml_scalar
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.training.trainer_arguments import ARGUMENTS_ROUTE, EQUIVALENT_FIELDS

HALVES = ("bf16", "fp16")
AT_MOST_ONE = (
    "TrainingArguments takes one of them: it ends in a ValueError, At most one of fp16 and "
    "bf16 can be True, but not both."
)

WHY = "The rules, the memory estimate and the verification go by the field."


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    if context.resolved is not None:
        return
    are_both_true = all(training.arguments.get(half) is True for half in HALVES)
    if are_both_true:
        declared = training.precision.value
        keep = declared if declared in HALVES else "bf16"
        yield RULE.diagnostic(
            "bf16 and fp16 are both true among the arguments",
            (*ARGUMENTS_ROUTE, "fp16" if keep == "bf16" else "bf16"),
            at=RoutePart.KEY,
            severity=None if context.uses_trainer else Severity.WARNING,
            why=AT_MOST_ONE,
            help=f"leave both out, and {'keep' if keep == declared else 'write'} precision: {keep}",
        )
    for name in EQUIVALENT_FIELDS.keys() & training.arguments.keys():
        field, convert = EQUIVALENT_FIELDS[name]
        value = convert(training.arguments[name])
        declared = getattr(training, field)
        if not isinstance(value, str | int) or (name in HALVES and are_both_true):
            continue
        if name == "tf32" and declared in ("tf32", *HALVES):  # it has an effect: see rule GPU007
            continue
        if field in training.model_fields_set:
            yield _conflict_finding(context, name, field, value, declared)
        else:
            yield _default_finding(name, field, value, declared)


def _conflict_finding(
    context: LintContext, name: str, field: str, value: str | int, declared: Any
) -> Diagnostic:
    """Return the finding about an argument whose field is written too."""
    text = _yaml(value)
    severity = Severity.WARNING
    why = WHY
    message = f"{name}: {text} among the arguments, while {field} is {_yaml(declared)}"
    help_text = f"write {field}: {text}, and leave {name} out"
    if value == declared:
        severity = Severity.INFO
        message = f"{name}: {text} among the arguments says {field}: {text} again"
        help_text = f"leave {name} out"
    elif value in HALVES and declared in HALVES:
        severity = RULE.severity if context.uses_trainer else Severity.WARNING
        why = AT_MOST_ONE
        message = f"{name}: true among the arguments, while precision is {declared}"
        help_text = f"leave {name} out, or write precision: {name} in its place"
    return RULE.diagnostic(
        message,
        (*ARGUMENTS_ROUTE, name),
        at=RoutePart.KEY,
        severity=severity,
        why=why,
        help=help_text,
        related=related_at(("training", field), "said here"),
    )


def _default_finding(name: str, field: str, value: str | int, default: Any) -> Diagnostic:
    """Return the finding about an argument whose field is not written."""
    text = _yaml(value)
    if value == default:
        return RULE.diagnostic(
            f"{name}: {text} among the arguments says {field}: {text} again",
            (*ARGUMENTS_ROUTE, name),
            at=RoutePart.KEY,
            severity=Severity.INFO,
            why=WHY,
            help=f"leave {name} out",
        )
    meaning = f" and means {_yaml(default)}" if default is not None else ""
    written = yaml_scalar(text) if isinstance(value, str) else text
    return RULE.diagnostic(
        f"{name}: {text} among the arguments, while {field} is not given{meaning}",
        (*ARGUMENTS_ROUTE, name),
        at=RoutePart.KEY,
        severity=Severity.INFO if field == "batch_size" else Severity.WARNING,
        why=WHY,
        help=f"write {field}: {text}, and leave {name} out",
        fix=unsafe_fix(f"write {field}: {text}", Insert(("training",), field, written)),
    )


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


RULE = Rule(
    id="TRN004",
    name="argument-repeats-field",
    severity=Severity.ERROR,
    sources=(
        "the spec language: training",
        "training_args.py in the wheels of transformers 4.57.6 and 5.23.0",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{arguments: {bf16: true}}\n",
            "bf16",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{batch_size: 4, arguments: {per_device_train_batch_size: 8}}\n",
            "per_device_train_batch_size",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{optimizer: sgd, arguments: {optim: sgd}}\n",
            "optim",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{arguments: {bf16: true, fp16: true}}\n",
            "fp16",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{precision: bf16, arguments: {fp16: true}}\n",
            "fp16",
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{precision: bf16, arguments: {tf32: true}}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{precision: bf16, batch_size: 4, optimizer: sgd}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{precision: bf16, arguments: {fp16: false}}\n",
    ),
)
