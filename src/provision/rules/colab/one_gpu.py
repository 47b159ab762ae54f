"""Several cards are requested, and a Colab runtime has one.

## What it does

Finds Colab targets with more than one card.

## Why

Every runtime that Colab offers has a single card. The second one never appears, and training for
several cards does not start.

## How to fix

Give the Colab target a `gpu` with one card, or take another place for the work that needs several.
"""

from __future__ import annotations

from provision.diagnostics import (
    Severity,
)
from provision.rules.colab.runtimes import colab_targets, set_gpu_fix, smallest_sufficient_card
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for colab in colab_targets(context):
        gpu = colab.facts.gpu_settings.gpu
        if gpu.count <= 1 or not colab.facts.gpu_settings.is_nvidia:
            continue
        card = colab.facts.card
        name = gpu.type
        if card and not card.colab:
            name = smallest_sufficient_card(context, card).name
        yield RULE.diagnostic(
            f"target {colab.name}: {gpu.count} cards are asked for, and a Colab runtime has one",
            colab.gpu_location,
            why="Colab offers no runtime with several cards.",
            help=f"write gpu: {name} at target {colab.name}, or take a Workbench machine for {gpu}",
            fix=set_gpu_fix(context, colab, name, "ask Colab for one"),
        )


RULE = Rule(
    id="IMG026",
    name="colab-one-gpu",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/google-colab-cli: what can be asked for is a kind of card, never a number",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: T4:2\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07"}\n',
            '{kind: colab, runtime: "2026.07"}',
        ),
        Example(
            'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07", gpu: "T4:4"}\n',
            '"T4:4"',
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07"}\n',
        'gpu: T4:2\npython: "3.12"\npackages: []\ntargets:\n  here: {kind: local}\n  '
        'colab: {kind: colab, runtime: "2026.07", gpu: T4}\n',
    ),
)
