"""fp8 training needs a backend, and no backend is listed.

## What it does

If `precision` is fp8 and training uses Trainer or accelerate, looks for torchao, transformer-engine
or ms-amp.

## Why

accelerate fails with "no FP8-compatible backend was installed". torch alone multiplies in fp8, but
does not train in it.

## How to fix

Add torchao.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.package_requirements import add_package_fix
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples
from provision.spec import Precision

BACKENDS = (
    "torchao",
    "transformer-engine",
    "transformer-engine-torch",
    "transformer-engine-cu12",
    "transformer-engine-cu13",
    "ms-amp",
    "msamp",
)


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    names = context.package_names
    if training.precision is not Precision.FP8 or training.method == "inference":
        return
    if not (context.uses_trainer or "accelerate" in names) or not names.isdisjoint(BACKENDS):
        return
    yield RULE.diagnostic(
        "`precision: fp8` needs torchao or transformer-engine, but neither is "
        f"{context.package_list}",
        ("training", "precision"),
        why=(
            "accelerate needs one of these packages to train in fp8, and fails if neither is "
            "installed."
        ),
        help="add torchao to `packages`, or set `precision: bf16`",
        fix=add_package_fix("torchao", ""),
    )


RULE = Rule(
    id="TRN015",
    name="fp8-needs-backend",
    severity=Severity.WARNING,
    sources=(
        (
            "accelerator.py in the wheel of accelerate 1.15.0 (no FP8-compatible backend was "
            "installed)"
        ),
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: H100\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {precision: «fp8»}\n",
        example(
            'gpu: H100\npython: "3.11"\npackages: [torch, accelerate]\n'
            "training: {precision: «fp8»}\n",
            ResolvedSet({"torch": "2.13.0", "accelerate": "1.15.0"}, "3.11", "cu130"),
        ),
    ),
    good=examples(
        'gpu: H100\npython: "3.11"\npackages: ["transformers[torch]>=5", torchao]\n'
        "training: {precision: fp8}\n",
        'gpu: H100\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {precision: bf16}\n",
        'gpu: H100\npython: "3.11"\npackages: [torch]\ntraining: {precision: fp8}\n',
    ),
)
