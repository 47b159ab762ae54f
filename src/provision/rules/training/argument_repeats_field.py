"""An argument of Trainer repeats or contradicts a field of `training`.

## What it does

Compares `bf16`, `fp16`, `tf32`, `per_device_train_batch_size`, `optim`, `gradient_checkpointing`,
`dataloader_num_workers` and `torch_compile` under `training.arguments` with `precision`,
`batch_size`, `optimizer` and the other fields of `training`.

## Why

The rules, the memory estimate and the verification use the fields. With `bf16: true` under
`arguments` and without `precision: bf16`, they check a different training run than the one that
runs. With both `bf16` and `fp16`, TrainingArguments fails with "At most one of fp16 and bf16 can be
True, but not both".

`tf32` is accepted together with bf16 and fp16: it applies to the operations that stay in 32 bits.

## How to fix

Set the field, and remove the argument.
"""

from __future__ import annotations

from typing import Any

from provision.diagnostics import Diagnostic, Insert, RoutePart, Severity
from provision.rules.edits import unsafe_fix, yaml_scalar
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.training.trainer_arguments import ARGUMENTS_ROUTE, EQUIVALENT_FIELDS

HALVES = ("bf16", "fp16")
AT_MOST_ONE = (
    'TrainingArguments fails with "At most one of fp16 and bf16 can be True, but not both".'
)

WHY = "The rules, the memory estimate and the verification use the field, not the argument."


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    if context.resolved is not None:
        return
    are_both_true = all(training.arguments.get(half) is True for half in HALVES)
    if are_both_true:
        declared = training.precision.value
        keep = declared if declared in HALVES else "bf16"
        yield RULE.diagnostic(
            "`bf16` and `fp16` are both true under `arguments`",
            (*ARGUMENTS_ROUTE, "fp16" if keep == "bf16" else "bf16"),
            at=RoutePart.KEY,
            severity=None if context.uses_trainer else Severity.WARNING,
            why=AT_MOST_ONE,
            help=f"remove both, and {'keep' if keep == declared else 'set'} `precision: {keep}`",
        )
    for name in EQUIVALENT_FIELDS.keys() & training.arguments.keys():
        field = EQUIVALENT_FIELDS[name]
        value = training.arguments[name]
        if field == "precision":
            value = name if value is True else None
        if not isinstance(value, str | int) or (name in HALVES and are_both_true):
            continue
        if name == "tf32" and training.precision in ("tf32", *HALVES):
            continue  # it has an effect: see rule GPU007
        yield _finding(context, name, field, value)


def _finding(context: LintContext, name: str, field: str, value: str | int) -> Diagnostic:
    """Return the finding about an argument that has the same meaning as a field."""
    declared = getattr(context.spec.training, field)
    is_written = field in context.spec.training.model_fields_set
    argument = f"`{name}: {_yaml(context.spec.training.arguments[name])}` under `arguments`"
    text = _yaml(value)
    severity = Severity.WARNING
    why = WHY
    message = f"{argument} contradicts `{field}: {_yaml(declared)}`"
    help_text = f"set `{field}: {text}`, and remove {name}"
    fix = None
    if value == declared:
        severity = Severity.INFO
        message = f"{argument} repeats `{field}: {text}`"
        help_text = f"remove {name}"
    elif not is_written:
        if field == "batch_size":
            severity = Severity.INFO
        default = f" and defaults to {_yaml(declared)}" if declared is not None else ""
        message = f"{argument} is set, but `{field}` is not set{default}"
        written = yaml_scalar(text) if isinstance(value, str) else text
        fix = unsafe_fix(f"set `{field}: {text}`", Insert(("training",), field, written))
    elif value in HALVES and declared in HALVES:
        if context.uses_trainer:
            severity = RULE.severity
        why = AT_MOST_ONE
        help_text = f"remove {name}, or set `precision: {name}` instead"
    return RULE.diagnostic(
        message,
        (*ARGUMENTS_ROUTE, name),
        at=RoutePart.KEY,
        severity=severity,
        why=why,
        help=help_text,
        related=related_at(("training", field), f"`{field}` set here") if is_written else (),
        fix=fix,
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
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {«bf16»: true}}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {batch_size: 4, arguments: {«per_device_train_batch_size»: 8}}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {optimizer: sgd, arguments: {«optim»: sgd}}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {bf16: true, «fp16»: true}}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {precision: bf16, arguments: {«fp16»: true}}\n",
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {precision: bf16, arguments: {tf32: true}}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {precision: bf16, batch_size: 4, optimizer: sgd}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {precision: bf16, arguments: {fp16: false}}\n",
    ),
)
