"""The requested GPU is not in Colab's free tier.

## What it does

Reports the compute units per hour of each Colab target whose GPU costs compute units.

## Why

The free tier has one type of GPU. With a free account, a notebook that requests another type gets
that one, or no GPU; the verification then finds a different GPU than the spec declares.

## How to fix

No change is needed if the account has compute units. Otherwise set `gpu` on the Colab target to the
GPU in the free tier.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import gpu_location
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import ColabTarget


def _check(context: LintContext) -> Findings:
    free = context.facts.conditions["free GPU"].value
    for target, _ in context.targets_of(ColabTarget):
        card = target.card
        if card is None or not card.colab or card.name == free:
            continue
        shapes = (shape for shape in context.facts.shapes if shape.card == card.name)
        rates = [shape.units_per_hour for shape in shapes if shape.units_per_hour]
        yield RULE.diagnostic(
            f"target `{target.name}`: {card.name} on Colab costs compute units"
            + (f", about {min(rates)} per hour" if rates else ""),
            gpu_location(target),
            why=(
                f"The only GPU in the free tier is the {free}; with a free account, the runtime "
                f"starts without the {card.name}."
            ),
            help=(
                f"no change is needed if you have compute units; otherwise set `gpu: {free}` on "
                f"target `{target.name}`"
            ),
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
    bad=examples(
        'gpu: L4\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: «{kind: colab, runtime: "2026.07"}»\n',
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07", gpu: «A100-80GB»}\n',
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: L4\npython: "3.12"\npackages: []\n',
    ),
)
