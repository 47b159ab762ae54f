"""The card is too old for the precision.

## What it does

Compares the compute capability of the card with what the precision needs: bf16 and tf32 8.0
(Ampere), fp8 8.9 (Ada, Hopper).

## Why

On a T4 or V100, `torch.cuda.is_bf16_supported()` answers yes since torch 2.3, because bf16 is
emulated there: training runs and crawls. With an older torch, or with transformers before 4.35,
Trainer ends in "Your setup doesn't support bf16/gpu". tf32 is refused with a ValueError, and fp8
products do not run at all.

## How to fix

Declare fp16 on cards before Ampere, or take a newer card.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.facts.versions import require_version
from provision.rules.edits import replace_fix
from provision.rules.package_requirements import requested_package
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.spec import Precision

NEEDS = {Precision.BF16: "8.0", Precision.TF32: "8.0", Precision.FP8: "8.9"}
"""Lowest compute capability with tensor cores for the format (NVIDIA, CUDA C++ Programming Guide,
arithmetic throughput and feature tables).
"""

_FIX = replace_fix("write precision: fp16", ("training", "precision"), "fp16")
_EMULATED = "bf16 is emulated there and slow, although torch reports it as supported."


def _check(context: LintContext) -> Findings:
    precision = context.spec.training.precision
    needed = NEEDS.get(precision)
    if needed is None:
        return
    has_cpu_target = any(device.gpu.is_none for device in context.devices)
    for route, gpu in {device.gpu_route: device.gpu for device in context.devices}.items():
        card = context.facts.card(gpu.type)
        if card is None or require_version(card.cc) >= require_version(needed):
            continue
        severity = None
        why = "It does not run on that card."
        if precision is Precision.BF16:
            why = _refusal(context, card)
            if not why:
                severity = Severity.WARNING
                why = "bf16 is emulated there and slow, although torch reports it as supported."
        yield RULE.diagnostic(
            f"precision: {precision.value} needs compute capability {needed}, and "
            f"{gpu.type} has {card.cc}",
            ("training", "precision"),
            severity=severity,
            evidence=card.evidence,
            why=why,
            help="write precision: fp16, or take a newer card",
            related=related_at(route, "card asked for here"),
            fix=None if has_cpu_target else _FIX,
        )


def _refusal(context: LintContext, card: Card) -> str:
    """Return why Trainer refuses the precision on a card, or "" if it may accept it."""
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
                f'Trainer ends in "Your setup doesn\'t support {row.precision}/gpu" there with '
                f"{row.package} before {row.first}."
            )
    return ""


RULE = Rule(
    id="GPU004",
    name="precision-beyond-card",
    severity=Severity.ERROR,
    sources=(
        "NVIDIA, CUDA C++ Programming Guide",
        "lm-sys/FastChat#1191",
        "TrainingArguments.__post_init__ in transformers 5.23.0 (tf32)",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: T4\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: '
            "{precision: bf16}\n",
            "bf16",
        ),
        Example(
            'gpu: V100\ncuda: "12.1"\npython: "3.11"\npackages: '
            '["transformers[torch]"]\ntraining: {precision: bf16}\n',
            "bf16",
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
        Example(
            'gpu: A100-80GB\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp8}\n', "fp8"
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {precision: '
            "tf32}\ntargets: {old: {kind: local, gpu: T4}}\n",
            "tf32",
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp16}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp8}\n',
        'gpu: H100\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp8}\n',
        'gpu: Z999\npython: "3.11"\npackages: [torch]\ntraining: {precision: bf16}\n',
    ),
)
