"""An argument of Trainer says again, or otherwise, what a field of `training` says.

## What it does

Compares `bf16`, `fp16`, `tf32`, `per_device_train_batch_size`, `optim`, `gradient_checkpointing`, `dataloader_num_workers` and `torch_compile` under
`training.arguments` with `precision`, `batch_size`, `optimizer` and the other fields of `training`.

## Why

The fields are what the rules, the memory estimate and the verification go by. With `bf16: true` among the arguments and no `precision: bf16`, they judge
another training than the one that runs.

## How to fix

Say it in the field, and leave the argument out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.diagnostics import Applicability, At, Diagnostic, Fix, Insert, Severity
from provision.rules.arguments import ARGUMENTS, FIELDS
from provision.rules.lines import scalar
from provision.rules.rule import Case, Example, Rule, seen


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each such argument."""
    training = case.spec.training
    if case.resolved is not None:
        return
    for name in FIELDS.keys() & training.arguments.keys():
        field, reading = FIELDS[name]
        said, declared = reading(training.arguments[name]), getattr(training, field)
        # Saying tf32 again does something: see rule GPU007.
        if said is not None and isinstance(said, str | int) and (name, said) != ("tf32", declared):
            given = field in training.model_fields_set
            yield _finding(name, field, said, declared, given=given)


def _finding(name: str, field: str, said: str | int, declared: Any, *, given: bool) -> Diagnostic:
    text, same = str(said).lower() if isinstance(said, bool) else str(said), said == declared
    now = str(declared).lower() if isinstance(declared, bool) else declared
    other = f"{field} is {now}" if given else f"{field} is not given" + (f" and means {now}" if declared is not None else "")
    fix = (
        None
        if given or same
        else Fix(f"write {field}: {text}", (Insert(("training",), field, scalar(text) if isinstance(said, str) else text),), Applicability.UNSAFE)
    )
    return RULE.found(
        f"{name}: {text} among the arguments says {field}: {text} again" if same else f"{name}: {text} among the arguments, while {other}",
        (*ARGUMENTS, name),
        at=At.KEY,
        severity=Severity.INFO if same else None,
        why="The rules, the memory estimate and the verification go by the field.",
        way_out=f"leave {name} out" if same else f"write {field}: {text}, and leave {name} out",
        related=(seen(("training", field), "said here"),) if given else (),
        fix=fix,
    )


RULE = Rule(
    id="TRN004",
    name="argument-repeats-field",
    severity=Severity.WARNING,
    summary="An argument of Trainer repeats or contradicts a field of training.",
    sources=("the spec language: training",),
    page=__doc__,
    check=check,
    bad=(
        Example('gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: {arguments: {bf16: true}}\n', "bf16"),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: {batch_size: 4, arguments: {per_device_train_batch_size: 8}}\n',
            "per_device_train_batch_size",
        ),
        Example('gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: {optimizer: sgd, arguments: {optim: sgd}}\n', "optim"),
    ),
    good=(
        Example('gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: {precision: bf16, batch_size: 4, optimizer: sgd}\n'),
        Example('gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: {precision: bf16, arguments: {fp16: false}}\n'),
    ),
)
