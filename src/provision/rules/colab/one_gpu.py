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
    Edit,
    Insert,
    Replace,
    RouteLocation,
    Severity,
)
from provision.rules.colab.runtimes import colab_targets, smallest_sufficient_card
from provision.rules.edits import unsafe_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for colab in colab_targets(context):
        device = colab.facts.gpu_settings
        if not device.is_nvidia or device.gpu.count <= 1:
            continue
        own = device.gpu_route == (*colab.facts.route, "gpu")
        card = colab.facts.card
        if card is None or card.colab:
            name = device.gpu.type
        else:
            name = smallest_sufficient_card(context, card).name
        edit: Edit
        if own:
            edit = Replace(RouteLocation(device.gpu_route), name)
        else:
            edit = Insert(colab.facts.route, "gpu", name)
        yield RULE.diagnostic(
            f"target {colab.name}: {device.gpu.count} cards are asked for, and a Colab "
            "runtime has one",
            device.gpu_route if own else colab.facts.route,
            why="Colab offers no runtime with several cards.",
            help=f"write gpu: {name} at target {colab.name}, or take a Workbench machine for "
            f"{device.gpu}",
            fix=None
            if own and context.source.text(device.gpu_route) is None
            else unsafe_fix("ask Colab for one", edit),
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
