"""`requires.compute_capability` leaves the card out.

## What it does

Compares `requires.compute_capability` with the card of each place.

## Why

The check on the device would fail for certain, after the machine was made and paid for.

## How to fix

Require less, or request another card; `requires` under a target applies to that target only.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.rules.machine_requirements import find_machine_requirement
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    reported = set()
    for target in context.targets:
        card = target.card
        requirement = find_machine_requirement(context, target, "compute_capability")
        specifiers = requirement.specifiers if requirement else None
        if card is None or requirement is None or specifiers is None:
            continue
        gpu_route = target.gpu_settings.gpu_route
        if specifiers.contains(card.cc) or (requirement.route, gpu_route) in reported:
            continue
        reported.add((requirement.route, gpu_route))
        fitting = [
            other
            for other in context.facts.cards
            if _is_offered(other, target.target.kind) and specifiers.contains(other.cc)
        ]
        example = ""
        if fitting:
            example = f", as {min(fitting, key=lambda other: other.memory_gb).name}"
        yield RULE.diagnostic(
            f"requires.compute_capability: {requirement.text} is asked for, and {card.name} has "
            f"{card.cc}",
            requirement.route,
            evidence=card.evidence,
            why="The check on the device would fail, whatever the machine.",
            help=f"ask for less, or for another card{example}",
            related=related_at(gpu_route, "card asked for here"),
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
    bad=(
        Example(
            'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {compute_capability: ">=8.0"}\n',
            '">=8.0"',
        ),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\nrequires: {compute_capability: '
            '">=8.0"}\ntargets: {c: {kind: colab, gpu: T4}}\n',
            '">=8.0"',
            other_ids=("IMG020",),
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {compute_capability: ">=7.5"}\n',
        'gpu: A100-80GB\npython: "3.12"\npackages: [torch]\nrequires: '
        '{compute_capability: "==8.*"}\n',
    ),
)
