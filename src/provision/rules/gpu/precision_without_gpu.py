"""fp16, fp8 or tf32 is declared for a CPU.

## What it does

At every target without an accelerator, looks at `training.precision`: fp16, fp8 and tf32.

## Why

On a CPU, Trainer accepts `fp16=True`, reports fp16, and trains in fp32: the weights come out equal
to an fp32 run. tf32 is refused with a ValueError, and fp8 has no CPU kernels. In plain torch, fp16
matrix products on a CPU work, some forty times slower than in bf16.

## How to fix

Declare `precision: fp32` for CPU targets, or bf16, which a CPU computes in.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.spec import Precision

_WHY = {
    Precision.FP16: "On a CPU, Trainer takes fp16 without complaint and trains in fp32; "
    "plain torch computes in it, but some forty times slower than in bf16.",
    Precision.FP8: "There are no fp8 kernels for CPUs.",
    Precision.TF32: "tf32 is a mode of NVIDIA's tensor cores; TrainingArguments(tf32=True) is "
    "refused without one.",
}


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    precision = training.precision
    if precision not in _WHY or training.method == "inference":
        return
    is_slow_only = precision is Precision.FP16 and not context.uses_trainer
    routes = dict.fromkeys(device.gpu_route for device in context.devices if device.gpu.is_none)
    for route in routes:
        at = f" at target {route[1]}" if len(route) > 1 else ""
        yield RULE.diagnostic(
            f"precision: {precision.value} is declared, and gpu is none{at}",
            ("training", "precision"),
            severity=Severity.WARNING if is_slow_only else None,
            why=_WHY[precision],
            help="write precision: fp32 or bf16, or ask for a GPU",
            related=related_at(route, "no accelerator here"),
        )


RULE = Rule(
    id="GPU002",
    name="precision-without-gpu",
    severity=Severity.ERROR,
    sources=(
        (
            "tried with transformers 5.23.0 and torch 2.13.0 on a CPU: the weights of an fp16 "
            "run equal those of an fp32 run"
        ),
        (
            "measured there, one thread, 1024x1024 matrix product: fp32 0.02 s, bf16 0.08 s, "
            "fp16 3.6 s"
        ),
        "TrainingArguments.__post_init__ in transformers 5.23.0 (tf32)",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: '
            "{precision: fp16}\n",
            "fp16",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp16}\n', "fp16"
        ),
        Example(
            'gpu: H100\npython: "3.11"\npackages: [torch]\ntraining: {precision: '
            "fp8}\ntargets: {laptop: {kind: local, gpu: none}}\n",
            "fp8",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {precision: bf16}\n',
        'gpu: T4\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp16}\n',
    ),
)
