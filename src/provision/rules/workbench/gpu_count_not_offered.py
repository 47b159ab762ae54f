"""No machine type has that number of that card.

## What it does

With `machine_type: auto`, looks for a machine type that Workbench can have with exactly the
requested cards.

## Why

There is nothing that `auto` could choose.

## How to fix

Request a number of cards that a machine type has, or name the reservation of the machine.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import (
    UNAVAILABLE_STATUS,
    available_gpu_counts,
    workbench_instances,
)


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        card = instance.facts.card
        count = instance.facts.gpu_settings.gpu.count
        if card is None or instance.target.machine_type != "auto":
            continue
        if not card.workbench or card.status in UNAVAILABLE_STATUS:
            continue
        offered = available_gpu_counts(context.facts, card, reserved=instance.reserved)
        if count in offered:
            continue
        message = f"no machine type gives Workbench {count} x {card.name}"
        ways = []
        reservable = available_gpu_counts(context.facts, card, reserved=True)
        if count in reservable:
            message += " without a reservation"
            numbers = ", ".join(map(str, reservable))
            ways.append(f"name a reservation ({card.name} in numbers of {numbers} needs one)")
        if offered:
            ways.append(f"ask for {', '.join(map(str, offered))}")
        yield RULE.diagnostic(
            message,
            instance.facts.gpu_settings.gpu_route,
            evidence=card.evidence,
            why="There is nothing that machine_type: auto could choose.",
            help=", or ".join(ways) or "take another card",
            related=related_at(instance.route("kind"), "kind of place"),
        )


RULE = Rule(
    id="GCP005",
    name="gpu-count-not-offered",
    severity=Severity.ERROR,
    sources=(
        "Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",
        "dstackai/gpuhunt providers/gcp.py",
    ),
    check=_check,
    bad=(
        Example(example_spec("gpu: L4:3\n", machine_type="auto"), "L4:3", other_ids=("TRN006",)),
        Example(example_spec("gpu: H100-80GB\n", machine_type="auto"), "H100-80GB"),
        Example(
            example_spec("gpu: B200:8\n", machine_type="auto", zones="[us-central1-b]"),
            "B200:8",
            other_ids=("TRN006",),
        ),
    ),
    good=examples(
        example_spec("gpu: L4:4\n", machine_type="auto"),
        example_spec("gpu: T4:2\n", machine_type=None),
        example_spec(
            "gpu: B200:8\n",
            machine_type="auto",
            reservation="my-reservation",
            zones="[us-central1-b]",
        ),
    ),
)
