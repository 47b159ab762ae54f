"""The machine type does not have the requested GPUs.

## What it does

Compares `machine_type` with `gpu`. G2, A2, A3, A4 and G4 types carry a fixed number of one card;
T4, V100 and P4 are attached to N1 types, up to a size of the machine for each number of cards; all
other types take none.

## Why

Google Cloud refuses to make the machine. Without `gpu`, a machine type with a card is paid for and
its card not used.

## How to fix

Take the machine type that is named, or `machine_type: auto`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card, Facts
from provision.facts.machines import find_machines, fits_attachment
from provision.facts.schema_platforms import MachineType
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import nearest_machine, workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        machine = context.facts.machines.get(instance.target.machine_type)
        if machine is None:
            continue
        settings = instance.facts.gpu_settings
        route = instance.route("machine_type")
        if not settings.is_nvidia and machine.gpus:
            yield RULE.diagnostic(
                f"{machine.name} carries {_format_cards(machine.gpus, machine.card)}, and gpu: "
                f"{settings.gpu.type}",
                route,
                severity=Severity.WARNING,
                why="The card is paid for and nothing uses it: the lock takes builds for CPU.",
                help=f"write gpu: {machine.card}, or a machine type without a card, such as "
                "n2-standard-8",
                related=related_at(settings.gpu_route, "GPU declared here"),
            )
        card = instance.facts.card
        count = settings.gpu.count
        problem = _find_problem(context.facts, machine, card, count) if card else ""
        if card is None or not problem:
            continue
        machines = find_machines(context.facts, card, count, reserved=instance.reserved)
        near = nearest_machine(machines, machine)
        help_text = "no machine type of Workbench's has that number of that card: ask for another"
        if near:
            help_text = f"write machine_type: {near.name}, or auto"
        yield RULE.diagnostic(
            f"{machine.name} {problem}; {_format_cards(count, card.name)} "
            f"{'is' if count == 1 else 'are'} asked for",
            route,
            evidence=machine.evidence,
            why="Google Cloud refuses to make such a machine.",
            help=help_text,
            related=related_at(settings.gpu_route, "GPU asked for here"),
            fix=set_field_fix(context, route, near.name) if near else None,
        )


def _find_problem(facts: Facts, machine: MachineType, card: Card, count: int) -> str:
    if machine.gpus:
        if (machine.card, machine.gpus) == (card.name, count):
            return ""
        return f"carries {_format_cards(machine.gpus, machine.card)}"
    counts = [row.gpus for row in facts.attachments if row.card == card.name]
    if machine.family != "n1":
        return (
            f"takes no GPU; {card.name} is "
            f"{'attached to N1 types' if counts else 'carried by types of its own'}"
        )
    attached = facts.attachment(card.name, count)
    if attached is None:
        if counts:
            return f"takes {card.name} in numbers of {', '.join(map(str, counts))}"
        return f"is an N1 type, to which {card.name} is not attached"
    limit = f"{attached.vcpus_max} vCPUs and {attached.ram_max_gb:g} GiB"
    if fits_attachment(machine, attached):
        return ""
    return (
        f"has {machine.vcpus} vCPUs and {machine.ram_gb:g} GiB, and "
        f"{_format_cards(count, card.name)} allow {limit}"
    )


def _format_cards(count: float, name: str) -> str:
    return f"{count:g} x {name}"


RULE = Rule(
    id="GCP002",
    name="machine-lacks-gpu",
    severity=Severity.ERROR,
    sources=(
        "Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",
        "dstackai/gpuhunt providers/gcp.py (N1 limits)",
    ),
    check=_check,
    bad=(
        Example(example_spec("gpu: L4:2\n"), "g2-standard-8", other_ids=("TRN006",)),
        Example(example_spec("gpu: T4\n", machine_type="e2-standard-4"), "e2-standard-4"),
        Example(example_spec("gpu: T4\n", machine_type="n1-standard-64"), "n1-standard-64"),
        Example(
            example_spec("gpu: T4:3\n", machine_type="n1-standard-8"),
            "n1-standard-8",
            other_ids=("TRN006",),
        ),
        Example(example_spec("gpu: none\n"), "g2-standard-8"),
    ),
    good=examples(
        example_spec("gpu: L4:2\n", machine_type="g2-standard-24"),
        example_spec("gpu: T4\n", machine_type="n1-standard-32"),
        example_spec("gpu: T4:4\n", machine_type="n1-standard-64"),
        example_spec("gpu: none\n", machine_type="n2-standard-8"),
    ),
)
