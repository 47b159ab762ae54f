"""Workbench does not offer this GPU.

## What it does

Looks for the card among the accelerators of Workbench's API, and for cards that are no longer given
to new machines.

## Why

The instance cannot be made, in any zone.

## How to fix

Take the nearest card that is offered.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card, Facts
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list
from provision.rules.workbench_instances import UNAVAILABLE_STATUS, workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        near: tuple[str, ...] = ()
        card = instance.facts.card
        device = instance.facts.gpu_settings
        if device.gpu.type == "mps":
            problem = "gpu: mps is Apple silicon, which Google Cloud does not have"
        elif card is not None and (not card.workbench or card.status in UNAVAILABLE_STATUS):
            problem = (
                f"{card.name} "
                f"{UNAVAILABLE_STATUS.get(card.status, 'is not an accelerator of Workbench')}"
            )
            near = _nearest(context.facts, card)
        else:
            continue
        yield RULE.diagnostic(
            problem,
            device.gpu_route,
            evidence=card.evidence if card else None,
            why="The instance cannot be made, in any zone.",
            help=f"take {format_list(near)}"
            if near
            else "give this target a gpu of its own, or none",
            related=related_at(instance.route("kind"), "kind of place"),
        )


def _nearest(facts: Facts, card: Card) -> tuple[str, ...]:
    """Return the cards with as much memory, the smallest first, or else the largest card."""
    offered = sorted(
        (
            candidate
            for candidate in facts.cards
            if candidate.workbench and candidate.status == "offered"
        ),
        key=lambda candidate: candidate.memory_gb,
    )
    return tuple(candidate.name for candidate in offered if candidate.memory_gb >= card.memory_gb)[
        :3
    ] or (offered[-1].name,)


RULE = Rule(
    id="GCP004",
    name="gpu-not-on-workbench",
    severity=Severity.ERROR,
    sources=(
        "notebooks.v2 discovery document, revision 20261006, AcceleratorConfig",
        "GoogleCloudPlatform/magic-modules, workbench/Instance.yaml",
    ),
    check=_check,
    bad=(
        Example(
            example_spec("gpu: P100\n", machine_type="n1-standard-8", zones="[us-central1-c]"),
            "P100",
            other_ids=("CUD009",),
        ),
        Example(
            example_spec("gpu: RTX-4090\n", machine_type=None, zones="[us-central1-a]"), "RTX-4090"
        ),
        Example(
            example_spec("gpu: mps\n", machine_type="n2-standard-8"), "mps", other_ids=("CUD010",)
        ),
    ),
    good=examples(
        example_spec("gpu: T4\n", machine_type="n1-standard-8"),
        'gpu: RTX-4090\npython: "3.12"\npackages: [torch]\n',
    ),
)
