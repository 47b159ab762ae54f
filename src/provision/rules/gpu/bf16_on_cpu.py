"""Trainer refuses bf16 on a CPU unless use_cpu is set.

## What it does

At every target without an accelerator, looks at `training.precision: bf16`, and for Trainer at
`training.arguments.use_cpu`.

## Why

Without a GPU, `TrainingArguments(bf16=True)` ends in "Your setup doesn't support bf16/gpu. You need
to assign use_cpu if you want to train the model on CPU." With `use_cpu=True` it trains in bf16.
Fast kernels need a processor with AVX512-BF16 or AMX; without them bf16 saves memory, not time.

## How to fix

Say `arguments: {use_cpu: true}`, or declare fp32 for speed on older processors. A target with a GPU
must not say `use_cpu`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import set_argument_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.spec import Precision


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    if training.precision is not Precision.BF16 or training.method == "inference":
        return
    is_refused = context.uses_trainer and training.arguments.get("use_cpu") is not True
    routes = dict.fromkeys(device.gpu_route for device in context.devices if device.gpu.is_none)
    for route in routes:
        at = f" at target {route[1]}" if len(route) > 1 else ""
        related = related_at(route, "no accelerator here")
        if not is_refused:
            yield RULE.diagnostic(
                f"precision: bf16 is declared, and gpu is none{at}",
                ("training", "precision"),
                severity=Severity.INFO,
                why="Only CPUs with AVX512-BF16 or AMX compute fast in bf16.",
                help="nothing needs to change; fp32 may be faster",
                related=related,
            )
            continue
        # use_cpu would leave the card of another target idle.
        keeps_no_card_idle = all(device.gpu.is_none for device in context.devices)
        yield RULE.diagnostic(
            f"precision: bf16 is declared, and gpu is none{at} without use_cpu",
            ("training", "precision"),
            why="Trainer refuses bf16 without a GPU unless use_cpu is set.",
            help="say arguments: {use_cpu: true} under training, or write precision: fp32",
            related=related,
            fix=set_argument_fix(context, "use_cpu") if keeps_no_card_idle else None,
        )


RULE = Rule(
    id="GPU003",
    name="bf16-on-cpu",
    severity=Severity.WARNING,
    sources=(
        "TrainingArguments.__post_init__ in transformers 5.23.0, tried on a CPU",
        "oneDNN, bfloat16 training on CPUs",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: '
            "{precision: bf16}\n",
            "bf16",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: '
            "{precision: bf16, arguments: {use_cpu: true}}\n",
            "bf16",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {precision: '
            "bf16}\ntargets: {here: {kind: local, gpu: none}}\n",
            "bf16",
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: {precision: bf16}\n',
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\n',
    ),
)
