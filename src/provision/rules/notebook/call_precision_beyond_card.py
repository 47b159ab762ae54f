"""The GPU is too old for the precision that a call requests.

## What it does

Looks for `bf16=True` and `tf32=True` in calls of TrainingArguments and its subclasses, and for
`mixed_precision="bf16"` or `"fp8"` in calls of Accelerator. Compares their lowest compute
capability (bf16 and tf32 8.0, fp8 8.9) with the card that Colab saved in the notebook, or with the
cards of the spec.

## Why

A T4 does not support bf16: torch reports it as supported but emulates it, which is slow; tf32 is
refused with a ValueError, and fp8 products do not run at all.

## How to fix

Use `fp16=True` on GPUs before Ampere, or a newer GPU.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import require_version
from provision.rules.gpu.precision_capability import LOWEST_CAPABILITY
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.notebook.python_code import CallArgument, CellCall
from provision.rules.notebook.trainer_classes import is_trainer_class
from provision.rules.rule import Findings, Rule
from provision.spec import Precision


def _check(context: NotebookContext) -> Findings:
    for call in context.code.calls:
        for argument in call.arguments:
            precision = _precision(context, call, argument)
            needed = LOWEST_CAPABILITY.get(precision) if precision else None
            if precision is None or needed is None:
                continue
            for place in context.places:
                card = place.card
                if card is None or require_version(card.cc) >= require_version(needed):
                    continue
                is_slow = precision is Precision.BF16
                yield RULE.diagnostic(
                    f"{precision.value} requires compute capability {needed} or higher, but the "
                    f"{card.name} on {place.name} has {card.cc}",
                    argument.span,
                    severity=Severity.WARNING if is_slow else None,
                    evidence=card.evidence,
                    why="torch reports bf16 as supported, but emulates it, which is slow."
                    if is_slow
                    else "The GPU does not support this precision.",
                    help="use fp16, or a newer GPU",
                )
                break


def _precision(
    context: NotebookContext, call: CellCall, argument: CallArgument
) -> Precision | None:
    if call.name == "Accelerator" and argument.name == "mixed_precision":
        values = {precision.value: precision for precision in Precision}
        return values.get(str(argument.value))
    if argument.value is True and is_trainer_class(call, context.facts):
        return {"bf16": Precision.BF16, "tf32": Precision.TF32}.get(argument.name)
    return None


RULE = Rule(
    id="NTB007",
    name="call-precision-beyond-card",
    severity=Severity.ERROR,
    sources=(
        "NVIDIA, CUDA C++ Programming Guide",
        "TrainingArguments.__post_init__ in transformers 5.23.0 (tf32)",
    ),
    check=_check,
    bad=(
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", «bf16=True»)\n',
            colab="T4",
        ),
        notebook_example(
            "from accelerate import Accelerator\n"
            'accelerator = Accelerator(«mixed_precision="fp8"»)\n',
            spec='gpu: T4\npython: "3.12"\npackages: [torch, accelerate]\n',
        ),
    ),
    good=(
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", fp16=True, bf16=False)\n',
            colab="T4",
        ),
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", bf16=True)\n',
            colab="L4",
        ),
    ),
)
