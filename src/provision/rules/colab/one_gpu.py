"""Several GPUs are requested, but a Colab runtime has only one.

## What it does

Finds Colab targets with more than one GPU.

## Why

Every runtime that Colab offers has a single GPU, so training on several GPUs does not start.

## How to fix

Give the Colab target a `gpu` with one GPU, or use a different kind of target for work that needs
several.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import gpu_location, set_gpu_fix, smallest_sufficient_card
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import ColabTarget


def _check(context: LintContext) -> Findings:
    for target, _ in context.targets_of(ColabTarget):
        gpu = target.gpu_settings.gpu
        if gpu.count <= 1 or not target.gpu_settings.is_nvidia:
            continue
        card = target.card
        name = gpu.type
        if card and not card.colab:
            name = smallest_sufficient_card(context, card).name
        yield RULE.diagnostic(
            f"target `{target.name}`: {gpu.count} GPUs are requested, but a Colab runtime has only "
            "one",
            gpu_location(target),
            why="Colab does not offer runtimes with more than one GPU.",
            help=f"set `gpu: {name}` on target `{target.name}`, or use a Workbench target for "
            f"{gpu}",
            fix=set_gpu_fix(context, target, name),
        )


RULE = Rule(
    id="IMG026",
    name="colab-one-gpu",
    severity=Severity.ERROR,
    sources=("googlecolab/google-colab-cli: its options select a GPU type, not a count",),
    check=_check,
    bad=examples(
        'gpu: T4:2\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: «{kind: colab, runtime: "2026.07"}»\n',
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07", gpu: «"T4:4"»}\n',
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: T4:2\npython: "3.12"\npackages: []\ntargets:\n  here: {kind: local}\n'
        '  colab: {kind: colab, runtime: "2026.07", gpu: T4}\n',
    ),
)
