"""A card that Colab does not have.

## What it does

Looks up whether Colab offers the accelerator of each Colab target.

## Why

Colab has a handful of cards. A notebook that requests another card opens without it, and Colab's
command line replaces an unknown name by an A100.

## How to fix

Set `gpu` at the Colab target: the finding names the smallest card that is not weaker than the
requested one.
"""

from __future__ import annotations

from provision.diagnostics import (
    Severity,
)
from provision.rules.colab.runtimes import colab_targets, set_gpu_fix, smallest_sufficient_card
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for colab in colab_targets(context):  # GPU001 reports unknown cards
        card = colab.facts.card
        settings = colab.facts.gpu_settings
        if settings.gpu.type != "mps" and (card is None or card.colab):
            continue
        name = smallest_sufficient_card(context, card).name
        offered = ", ".join(other.name for other in context.facts.cards if other.colab)
        yield RULE.diagnostic(
            f"target {colab.name}: Colab has no {settings.gpu.type}",
            colab.gpu_location,
            evidence=card.evidence if card else None,
            why=f"It offers {offered}.",
            help=f"write gpu: {name} at target {colab.name}",
            related=()
            if colab.has_own_gpu
            else related_at(settings.gpu_route, "card asked for here"),
            fix=set_gpu_fix(context, colab, name, f"ask Colab for {name}"),
        )


RULE = Rule(
    id="IMG025",
    name="colab-gpu-not-offered",
    severity=Severity.ERROR,
    sources=("googlecolab/google-colab-cli client.py", "googlecolab/colab-vscode api.ts"),
    check=_check,
    bad=(
        Example(
            'gpu: V100\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07"}\n',
            '{kind: colab, runtime: "2026.07"}',
        ),
        Example(
            'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07", gpu: RTX-4090}\n',
            "RTX-4090",
        ),
        Example(
            'gpu: mps\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07"}\n',
            '{kind: colab, runtime: "2026.07"}',
            other_ids=("CUD010",),
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07"}\n',
        'gpu: V100\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07", gpu: T4}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07"}\n',
    ),
)
