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
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list
from provision.rules.workbench_instances import UNAVAILABLE_STATUS, workbench_instances


def _check(context: LintContext) -> Findings:
    offered = [card for card in context.facts.cards if card.workbench and card.status == "offered"]
    offered.sort(key=lambda card: card.memory_gb)
    for instance in workbench_instances(context):
        card = instance.facts.card
        settings = instance.facts.gpu_settings
        if settings.gpu.type == "mps":
            problem = "gpu: mps is Apple silicon, which Google Cloud does not have"
            help_text = "give this target a gpu of its own, or none"
        elif card is not None and (not card.workbench or card.status in UNAVAILABLE_STATUS):
            status = UNAVAILABLE_STATUS.get(card.status, "is not an accelerator of Workbench")
            problem = f"{card.name} {status}"
            least = card.memory_gb
            near = [other.name for other in offered if other.memory_gb >= least]
            help_text = f"take {format_list(near[:3] or [offered[-1].name])}"
        else:
            continue
        yield RULE.diagnostic(
            problem,
            settings.gpu_route,
            evidence=card.evidence if card else None,
            why="The instance cannot be made, in any zone.",
            help=help_text,
            related=related_at(instance.route("kind"), "kind of place"),
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
