"""Colab does not offer the requested GPU.

## What it does

Looks up whether Colab offers the accelerator of each Colab target.

## Why

Colab offers a handful of GPUs. A notebook that requests a different one opens without a GPU, and
Colab's command line replaces an unknown name with an A100.

## How to fix

Set `gpu` on the Colab target. The finding names the smallest GPU that is at least as powerful as
the requested one.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import gpu_location, set_gpu_fix, smallest_sufficient_card
from provision.rules.rule import (
    Findings,
    LintContext,
    Rule,
    example,
    examples,
    related_gpu,
)
from provision.spec import ColabTarget


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(ColabTarget):  # GPU001 reports unknown cards
        card = target.card
        gpu = target.gpu_settings.gpu
        if gpu.type != "mps" and (card is None or card.colab):
            continue
        name = smallest_sufficient_card(context, card).name
        offered = ", ".join(other.name for other in context.facts.cards if other.colab)
        yield RULE.diagnostic(
            f"target `{target.name}`: Colab does not offer {gpu.type}",
            gpu_location(target),
            evidence=card.evidence if card else None,
            why=f"Colab offers only these GPUs: {offered}.",
            help=f"set `gpu: {name}` on target `{target.name}`",
            related=() if fields.gpu else related_gpu(target),
            fix=set_gpu_fix(context, target, name),
        )


RULE = Rule(
    id="IMG025",
    name="colab-gpu-not-offered",
    severity=Severity.ERROR,
    sources=("googlecolab/google-colab-cli client.py", "googlecolab/colab-vscode api.ts"),
    check=_check,
    bad=examples(
        'gpu: V100\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: «{kind: colab, runtime: "2026.07"}»\n',
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07", gpu: «RTX-4090»}\n',
        example(
            'gpu: mps\npython: "3.12"\npackages: []\ntargets:\n'
            '  colab: «{kind: colab, runtime: "2026.07"}»\n',
            other_ids=("CUD010",),
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: V100\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07", gpu: T4}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
    ),
)
