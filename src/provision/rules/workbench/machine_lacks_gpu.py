"""The machine type does not have the requested GPUs.

## What it does

Compares `machine_type` with `gpu`. G2, A2, A3, A4 and G4 types have a fixed number of one GPU
model. T4, V100 and P4 are attached to N1 types, up to a machine size that depends on the number of
GPUs. All other types have no GPU.

## Why

Google Cloud refuses to create the machine. Without `gpu`, you pay for a machine type with a GPU
that nothing uses.

## How to fix

Use the machine type that the finding names, or `machine_type: auto`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.machines import describe_gpu_mismatch, find_machines
from provision.kinds import WorkbenchTarget
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    Rule,
    example,
    examples,
    related_gpu,
)
from provision.rules.workbench_instances import nearest_machine


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        machine = context.facts.machines.get(fields.machine_type)
        if machine is None:
            continue
        settings = target.gpu_settings
        route = target.route_to("machine_type")
        if not settings.is_nvidia and machine.gpus:
            yield RULE.diagnostic(
                f"{machine.name} has {machine.gpus:g} x {machine.card}, but `gpu` is "
                f"{settings.gpu.type}",
                route,
                severity=Severity.WARNING,
                why="You would pay for a GPU that is not used, because the lock selects CPU "
                "builds.",
                help=(
                    f"set `gpu: {machine.card}`, or use a machine type without a GPU, such as "
                    "n2-standard-8"
                ),
                related=related_gpu(target),
            )
        card = target.card
        count = settings.gpu.count
        problem = describe_gpu_mismatch(context.facts, machine, card, count) if card else ""
        if card is None or not problem:
            continue
        machines = find_machines(
            context.facts, card, count, reserved=fields.reservation is not None
        )
        near = nearest_machine(machines, machine)
        fix = set_field_fix(context, route, near.name) if near else None
        help_text = (
            f"there is no Workbench machine type with {count} x {card.name}; use a different "
            "number of GPUs"
        )
        yield RULE.diagnostic(
            f"{count} x {card.name} is requested, but {machine.name} {problem}",
            route,
            evidence=machine.evidence,
            why="Google Cloud refuses to create a machine with this combination.",
            help=f"{fix.title}, or `machine_type: auto`" if fix else help_text,
            related=related_gpu(target),
            fix=fix,
        )


RULE = Rule(
    id="GCP002",
    name="machine-lacks-gpu",
    severity=Severity.ERROR,
    sources=(
        "Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",
        "dstackai/gpuhunt providers/gcp.py (N1 limits)",
    ),
    check=_check,
    bad=examples(
        Example(example_spec("gpu: L4:2\n"), "g2-standard-8", other_ids=("TRN006",)),
        example_spec("gpu: T4\n", machine_type="«e2-standard-4»"),
        example_spec("gpu: T4\n", machine_type="«n1-standard-64»"),
        example(example_spec("gpu: T4:3\n", machine_type="«n1-standard-8»"), other_ids=("TRN006",)),
        Example(example_spec("gpu: none\n"), "g2-standard-8"),
    ),
    good=examples(
        example_spec("gpu: L4:2\n", machine_type="g2-standard-24"),
        example_spec("gpu: T4\n", machine_type="n1-standard-32"),
        example_spec("gpu: T4:4\n", machine_type="n1-standard-64"),
        example_spec("gpu: none\n", machine_type="n2-standard-8"),
    ),
)
