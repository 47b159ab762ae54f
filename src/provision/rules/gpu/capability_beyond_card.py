"""`requires.compute_capability` excludes the GPU.

## What it does

Compares `requires.compute_capability` with the GPU of each target.

## Why

The verification on the device is certain to fail, after the machine was created and paid for.

## How to fix

Relax the requirement, or request a different GPU. `requires` under a target applies only to that
target.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.rules.machine_requirements import find_version_requirement
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_gpu


def _check(context: LintContext) -> Findings:
    reported = set()
    for target in context.targets:
        card = target.card
        requirement = find_version_requirement(context, target, "compute_capability")
        if card is None or requirement is None or requirement.specifiers.contains(card.cc):
            continue
        key = (requirement.route, target.gpu_settings.gpu_route)
        if key in reported:
            continue
        reported.add(key)
        fitting = [
            other
            for other in context.facts.cards
            if _is_offered(other, target.target.kind) and requirement.specifiers.contains(other.cc)
        ]
        example = ""
        if fitting:
            example = f", for example {min(fitting, key=lambda other: other.memory_gb).name}"
        yield RULE.diagnostic(
            f"`requires.compute_capability: {requirement.text}` excludes {card.name}, which has "
            f"compute capability {card.cc}",
            requirement.route,
            evidence=card.evidence,
            why="Verification would fail on the target's machine.",
            help=f"relax the requirement, or use a different GPU{example}",
            related=related_gpu(target),
        )


def _is_offered(card: Card, kind: str) -> bool:
    """Return whether a kind of target can have a card; a local target can have any."""
    if kind == "colab":
        return bool(card.colab)
    return card.status == "offered" or (kind == "local" and not card.host)


RULE = Rule(
    id="GPU009",
    name="capability-beyond-card",
    severity=Severity.ERROR,
    sources=("NVIDIA, CUDA GPU Compute Capability",),
    check=_check,
    bad=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {compute_capability: «">=8.0"»}\n',
        example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\n'
            'requires: {compute_capability: «">=8.0"»}\ntargets: {c: {kind: colab, gpu: T4}}\n',
            other_ids=("IMG020",),
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {compute_capability: ">=7.5"}\n',
        'gpu: A100-80GB\npython: "3.12"\npackages: [torch]\n'
        'requires: {compute_capability: "==8.*"}\n',
    ),
)
