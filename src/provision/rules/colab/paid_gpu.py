"""A card that is not in Colab's free tier.

## What it does

Reports the compute units per hour of each Colab target whose card costs compute units.

## Why

The free tier has one kind of card. With a free account, a notebook that requests another card gets
that kind, or no card; the verification then finds a different card than the spec names.

## How to fix

Nothing, where the account has compute units. Else give the Colab target the free tier's card.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import colab_targets
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    free = context.facts.conditions["free GPU"].value
    for colab in colab_targets(context):
        card = colab.facts.card
        if card is None or not card.colab or card.name == free:
            continue
        shapes = (shape for shape in context.facts.shapes if shape.card == card.name)
        rates = [shape.units_per_hour for shape in shapes if shape.units_per_hour]
        yield RULE.diagnostic(
            f"target {colab.name}: {card.name} on Colab takes compute units"
            + (f", about {min(rates)} an hour" if rates else ""),
            colab.gpu_location,
            why=f"The only card of the free tier is {free}; with a free account the runtime "
            f"comes without {card.name}.",
            help=f"nothing with compute units; else write gpu: {free} at target {colab.name}",
        )


RULE = Rule(
    id="IMG027",
    name="colab-paid-gpu",
    severity=Severity.INFO,
    sources=(
        "googlecolab/google-colab-cli README, 2026-07-30",
        "chrisjmccormick.github.io, Colab GPUs, 2026-03-09",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07"}\n',
            '{kind: colab, runtime: "2026.07"}',
        ),
        Example(
            'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07", gpu: A100-80GB}\n',
            "A100-80GB",
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07"}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07"}\n',
        'gpu: L4\npython: "3.12"\npackages: []\n',
    ),
)
