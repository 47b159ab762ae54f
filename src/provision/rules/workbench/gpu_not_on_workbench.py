"""Workbench does not offer the requested GPU.

## What it does

Looks up the GPU among the accelerators in Workbench's API, and reports GPUs that are no longer
available for new machines.

## Why

The instance cannot be created in any zone.

## How to fix

Use the nearest GPU that is offered.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.text import format_alternatives
from provision.rules.workbench_instances import UNAVAILABLE_STATUS, is_available, related_kind


def _check(context: LintContext) -> Findings:
    offered = [card for card in context.facts.cards if card.workbench and card.status == "offered"]
    offered.sort(key=lambda card: card.memory_gb)
    for target, _ in context.targets_of(WorkbenchTarget):
        card = target.card
        settings = target.gpu_settings
        if settings.gpu.type == "mps":
            problem = "`gpu: mps` is Apple silicon, which Google Cloud does not offer"
            help_text = "set a different GPU or `gpu: none` on this target"
        elif card is not None and not is_available(card):
            problem = (
                f"{card.name} {UNAVAILABLE_STATUS.get(card.status, 'is not offered by Workbench')}"
            )
            near = [other.name for other in offered if other.memory_gb >= card.memory_gb]
            help_text = f"use {format_alternatives(near[:3] or [offered[-1].name])}"
        else:
            continue
        yield RULE.diagnostic(
            problem,
            settings.gpu_route,
            evidence=card.evidence if card else None,
            why="The instance cannot be created in any zone.",
            help=help_text,
            related=related_kind(target),
        )


RULE = Rule(
    id="GCP004",
    name="gpu-not-on-workbench",
    severity=Severity.ERROR,
    sources=(
        "notebooks.v2 discovery document, revision 20261006, AcceleratorConfig",
        "GoogleCloudPlatform/magic-modules, workbench/Instance.yaml",
    ),
    check=_check,
    bad=examples(
        example(
            example_spec("gpu: «P100»\n", machine_type="n1-standard-8", zones="[us-central1-c]"),
            other_ids=("CUD009",),
        ),
        example_spec("gpu: «RTX-4090»\n", machine_type=None, zones="[us-central1-a]"),
        example(example_spec("gpu: «mps»\n", machine_type="n2-standard-8"), other_ids=("CUD010",)),
    ),
    good=examples(
        example_spec("gpu: T4\n", machine_type="n1-standard-8"),
        'gpu: RTX-4090\npython: "3.12"\npackages: [torch]\n',
    ),
)
