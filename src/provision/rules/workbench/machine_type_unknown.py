"""The machine type is not in the facts.

## What it does

Looks the machine type up in the table of Compute Engine's machine types. Custom types
(`n1-custom-8-30720`) are accepted.

## Why

Its cards, its memory and its price are not known, so no rule can check what runs on it.

## How to fix

Take the nearest name, if that is meant, or `machine_type: auto`. `gcloud compute machine-types
list` lists the types that exist.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        name = instance.target.machine_type
        route = instance.route("machine_type")
        if name == "auto" or name in context.facts.machines or "custom-" in name:
            continue
        meant = nearest_word(name, context.facts.machines, 2)
        yield RULE.diagnostic(
            f"the facts know no machine type {name}"
            + (f"; the nearest is {meant}" if meant else ""),
            route,
            why="What it carries, how much memory it has and what it costs is not known, so no "
            "rule can tell what runs on it.",
            help=(
                f"write {meant}, if that is meant; else ask: " if meant else "write auto, or ask: "
            )
            + f"gcloud compute machine-types list --filter=name={name} "
            f"--zones={instance.target.zones[0]}",
            fix=set_field_fix(context, route, meant) if meant else None,
        )


RULE = Rule(
    id="GCP001",
    name="machine-type-unknown",
    severity=Severity.UNKNOWN,
    sources=("Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",),
    check=_check,
    bad=(
        Example(example_spec(machine_type="g2-standart-8"), "g2-standart-8"),
        Example(example_spec("gpu: none\n", machine_type="z9-standard-4"), "z9-standard-4"),
    ),
    good=examples(
        example_spec(machine_type="g2-standard-8"),
        example_spec(machine_type="auto"),
        example_spec("gpu: T4\n", machine_type="n1-custom-8-30720"),
    ),
)
