"""The GPU is too old for the precision.

## What it does

Compares the compute capability of the GPU with the minimum of the precision: bf16 and tf32 8.0
(Ampere), fp8 8.9 (Ada, Hopper).

## Why

On a T4 or V100, `torch.cuda.is_bf16_supported()` returns true since torch 2.3, because bf16 is
emulated there: training runs, but very slowly. With an older torch, or with transformers before
4.35, Trainer fails with "Your setup doesn't support bf16/gpu", and the attention of xformers fails
with "bf16 is only supported on A100+ GPUs". tf32 is rejected with a ValueError, and fp8 products do
not run at all.

## How to fix

Set fp16 on GPUs before Ampere, or use a newer GPU.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.facts.versions import require_version
from provision.rules.edits import replace_fix
from provision.rules.gpu.precision_capability import LOWEST_CAPABILITY
from provision.rules.package_requirements import requested_package
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_gpu,
)
from provision.spec import Precision

_FIX = replace_fix("set `precision: fp16`", ("training", "precision"), "fp16")


def _check(context: LintContext) -> Findings:
    precision = context.spec.training.precision
    needed = LOWEST_CAPABILITY.get(precision)
    if needed is None:
        return
    has_cpu_target = any(device.gpu.is_none for device in context.devices)
    for target in context.targets_by_gpu.values():
        card = target.card
        if card is None or require_version(card.cc) >= require_version(needed):
            continue
        severity = None
        why = "The GPU does not support this precision."
        if precision is Precision.BF16:
            why = _refusal(context, card)
            if not why:
                severity = Severity.WARNING
                why = "torch reports bf16 as supported, but emulates it, which is slow."
        yield RULE.diagnostic(
            f"`precision: {precision.value}` requires compute capability {needed} or higher, but "
            f"{target.gpu_settings.gpu.type} has {card.cc}",
            ("training", "precision"),
            severity=severity,
            evidence=card.evidence,
            why=why,
            help=f"{_FIX.title}, or use a newer GPU",
            related=related_gpu(target),
            fix=None if has_cpu_target else _FIX,
        )


def _refusal(context: LintContext, card: Card) -> str:
    """Return why Trainer or a package rejects the precision on a card, or "" if none does."""
    for floor in context.facts.capability_floors:
        if (
            floor.use == "bf16 attention"
            and floor.package in context.package_names
            and require_version(card.cc) < require_version(floor.cc_min)
        ):
            return f"The attention of {floor.package} fails on it: {floor.what}."
    for row in context.facts.precision_checks if context.uses_trainer else ():
        package = requested_package(context, row.package)
        if (
            row.precision == context.spec.training.precision.value
            and require_version(card.cc) < require_version(row.cc_min)
            and row.evidence.is_sure
            and package is not None
            and not package.may_be(row.first)
        ):
            return (
                f"With {row.package} before {row.first}, Trainer fails with \"Your setup doesn't "
                f'support {row.precision}/gpu".'
            )
    return ""


RULE = Rule(
    id="GPU004",
    name="precision-beyond-card",
    severity=Severity.ERROR,
    sources=(
        "NVIDIA, CUDA C++ Programming Guide",
        "lm-sys/FastChat#1191",
        "deepseek-ai/DeepSeek-VL2#119",
        "TrainingArguments.__post_init__ in transformers 5.23.0 (tf32)",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: T4\npython: "3.11"\npackages: ["transformers[torch]"]\n'
        "training: {precision: «bf16»}\n",
        example(
            'gpu: V100\ncuda: "12.1"\npython: "3.11"\npackages: ["transformers[torch]"]\n'
            "training: {precision: «bf16»}\n",
            ResolvedSet(
                {
                    "torch": "2.2.2",
                    "transformers": "4.44.2",
                    "accelerate": "0.34.2",
                    "numpy": "1.26.4",
                },
                "3.11",
                "cu121",
            ),
        ),
        'gpu: A100-80GB\npython: "3.11"\npackages: [torch]\ntraining: {precision: «fp8»}\n',
        'gpu: T4\npython: "3.11"\npackages: [torch==2.6.0, xformers==0.0.29.post3]\n'
        "training: {precision: «bf16»}\n",
        'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {precision: «tf32»}\n'
        "targets: {old: {kind: local, gpu: T4}}\n",
    ),
    good=examples(
        'gpu: T4\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp16}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch==2.6.0, xformers==0.0.29.post3]\n'
        "training: {precision: bf16}\n",
        'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp8}\n',
        'gpu: H100\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp8}\n',
        'gpu: Z999\npython: "3.11"\npackages: [torch]\ntraining: {precision: bf16}\n',
    ),
)
