"""Workbench cannot have this machine type.

## What it does

Finds machine types that Compute Engine gives as Spot or Flex-start only, with a reservation only if
the target names none, or with a share of a card.

## Why

Workbench has no Spot and no Flex-start: no field of its API requests them. A share of a card needs
the vGPU driver, which it does not install.

## How to fix

Name a `reservation` if the type needs it, or take the machine type of the finding.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.machines import find_machines, unavailability_reason
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.text import format_list
from provision.rules.workbench_instances import available_gpu_counts, workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        machine = context.facts.machines.get(instance.target.machine_type)
        reserved = instance.reserved
        why = unavailability_reason(machine, reserved=reserved) if machine else ""
        if machine is None or not why:
            continue
        card = context.facts.card(machine.card)
        others = []
        if card is not None:
            for count in available_gpu_counts(context.facts, card, reserved=reserved):
                smallest = find_machines(context.facts, card, count, reserved=reserved)[0]
                others.append(smallest.name)
        reserve = "name a reservation that holds it, or " if machine.only == "reservation" else ""
        yield RULE.diagnostic(
            f"{machine.name} is to be had {why}",
            instance.route("machine_type"),
            evidence=machine.evidence,
            why="Google Cloud refuses to make such a Workbench instance.",
            help=f"{reserve}take {format_list(others) or 'another card'}",
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
    bad=(
        Example(example_spec("gpu: H100-80GB\n", machine_type="a3-highgpu-1g"), "a3-highgpu-1g"),
        Example(
            example_spec(
                "gpu: H200-141GB:8\n", machine_type="a3-ultragpu-8g", zones="[us-central1-b]"
            ),
            "a3-ultragpu-8g",
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
