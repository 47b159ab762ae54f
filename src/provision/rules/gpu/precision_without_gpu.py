"""fp16, fp8 or tf32 is set for a CPU.

## What it does

On every target without an accelerator, checks `training.precision`: fp16, fp8 and tf32.

## Why

On a CPU, Trainer accepts `fp16=True`, reports fp16, and trains in fp32: the weights are equal to
those of an fp32 run. tf32 is rejected with a ValueError, and fp8 has no CPU kernels. In plain
torch, fp16 matrix products on a CPU work, but about 40 times slower than in bf16.

## How to fix

Set `precision: fp32` for CPU targets, or bf16, which CPUs support.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Findings, LintContext, Rule, cpu_targets, examples, related_at
from provision.spec import Precision

_WHY = {
    Precision.FP16: (
        "On a CPU, Trainer accepts fp16 but trains in fp32; plain torch computes in fp16, but "
        "about 40 times slower than in bf16."
    ),
    Precision.FP8: "There are no fp8 kernels for CPUs.",
    Precision.TF32: "tf32 is a mode of NVIDIA's tensor cores; TrainingArguments(tf32=True) is "
    "rejected without one.",
}


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    precision = training.precision
    if precision not in _WHY or training.method == "inference":
        return
    is_only_slow = precision is Precision.FP16 and not context.uses_trainer
    for subject, route in cpu_targets(context):
        yield RULE.diagnostic(
            f"`precision: {precision.value}` is set, but {subject} has `gpu: none`",
            ("training", "precision"),
            severity=Severity.WARNING if is_only_slow else None,
            why=_WHY[precision],
            help="set `precision: fp32` or `precision: bf16`, or request a GPU",
            related=related_at(route, "no GPU"),
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
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\n'
        "training: {precision: «fp16»}\n",
        'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {precision: «fp16»}\n',
        'gpu: H100\npython: "3.11"\npackages: [torch]\ntraining: {precision: «fp8»}\n'
        "targets: {laptop: {kind: local, gpu: none}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {precision: bf16}\n',
        'gpu: T4\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp16}\n',
    ),
)
