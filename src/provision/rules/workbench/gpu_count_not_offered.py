"""No machine type has the requested number of GPUs.

## What it does

With `machine_type: auto`, looks for a machine type that is available to Workbench and has exactly
the requested GPUs.

## Why

`machine_type: auto` has nothing to choose from.

## How to fix

Request a number of GPUs that a machine type has, or set the machine's reservation.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.text import format_alternatives
from provision.rules.workbench_instances import (
    available_gpu_counts,
    is_available,
    related_kind,
)


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        card = target.card
        count = target.gpu_settings.gpu.count
        if card is None or not is_available(card) or fields.machine_type != "auto":
            continue
        offered = available_gpu_counts(context.facts, card, reserved=fields.reservation is not None)
        if count in offered:
            continue
        message = f"there is no Workbench machine type with {count} x {card.name}"
        options = []
        reservable = available_gpu_counts(context.facts, card, reserved=True)
        if count in reservable:
            message += " without a reservation"
            numbers = ", ".join(map(str, reservable))
            options.append(f"set a reservation (required for {numbers} x {card.name})")
        if offered:
            numbers = format_alternatives(map(str, offered), most=len(offered))
            options.append(f"set the number of GPUs to {numbers}")
        yield RULE.diagnostic(
            message,
            target.gpu_settings.gpu_route,
            evidence=card.evidence,
            why="`machine_type: auto` has nothing to choose from.",
            help=", or ".join(options) or "use a different GPU",
            related=related_kind(target),
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
    bad=examples(
        example(example_spec("gpu: «L4:3»\n", machine_type="auto"), other_ids=("TRN006",)),
        example_spec("gpu: «H100-80GB»\n", machine_type="auto"),
        example(
            example_spec("gpu: «B200:8»\n", machine_type="auto", zones="[us-central1-b]"),
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
