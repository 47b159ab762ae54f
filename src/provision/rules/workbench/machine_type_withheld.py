"""This machine type is not available to Workbench.

## What it does

Finds machine types that Compute Engine offers only as Spot or Flex-start, types that require a
reservation if the target does not set one, and types with only a share of a GPU.

## Why

Workbench supports neither Spot nor Flex-start: no field of its API requests them. A share of a GPU
requires the vGPU driver, which Workbench does not install.

## How to fix

Set `reservation` if the type requires one, or use a machine type that the finding names.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.machines import find_machines, unavailability_reason
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.text import format_alternatives
from provision.rules.workbench_instances import available_gpu_counts


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        machine = context.facts.machines.get(fields.machine_type)
        reserved = fields.reservation is not None
        reason = unavailability_reason(machine, reserved=reserved) if machine else ""
        if machine is None or not reason:
            continue
        card = context.facts.card(machine.card)
        others = []
        if card is not None:
            for count in available_gpu_counts(context.facts, card, reserved=reserved):
                smallest = find_machines(context.facts, card, count, reserved=reserved)[0]
                others.append(smallest.name)
        reserve = "set a reservation that includes it, or " if machine.only == "reservation" else ""
        yield RULE.diagnostic(
            f"{machine.name} is available {reason}",
            target.route_to("machine_type"),
            evidence=machine.evidence,
            why="Google Cloud refuses to create a Workbench instance of this type.",
            help=f"{reserve}use {format_alternatives(others) or 'another GPU'}",
        )


RULE = Rule(
    id="GCP003",
    name="machine-type-withheld",
    severity=Severity.ERROR,
    sources=(
        "notebooks.v2 discovery document (no field for Spot)",
        "dstackai/gpuhunt providers/gcp.py",
        "Compute Engine documentation, reservation-bound VMs",
    ),
    check=_check,
    bad=examples(
        example_spec("gpu: H100-80GB\n", machine_type="«a3-highgpu-1g»"),
        example(
            example_spec(
                "gpu: H200-141GB:8\n", machine_type="«a3-ultragpu-8g»", zones="[us-central1-b]"
            ),
            other_ids=("TRN006",),
        ),
    ),
    good=examples(
        example_spec("gpu: H100-80GB:8\n", machine_type="a3-highgpu-8g"),
        example_spec(
            "gpu: H200-141GB:8\n",
            machine_type="a3-ultragpu-8g",
            reservation="my-reservation",
            zones="[us-central1-b]",
        ),
    ),
)
