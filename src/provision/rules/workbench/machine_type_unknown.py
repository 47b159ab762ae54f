"""The machine type is not in the facts.

## What it does

Looks up the machine type in the table of Compute Engine's machine types. Custom types
(`n1-custom-8-30720`) are accepted.

## Why

Its GPUs, memory and price are unknown, so the rules cannot check what runs on it.

## How to fix

Use the nearest name, if that is what you meant, or `machine_type: auto`. `gcloud compute
machine-types list` lists the existing types.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        name = fields.machine_type
        route = target.route_to("machine_type")
        if name == "auto" or name in context.facts.machines or "custom-" in name:
            continue
        message, fix = f"unknown machine type {name}", None
        help_text = "set `machine_type: auto`, or"
        meant = nearest_word(name, context.facts.machines, 2)
        if meant:
            message += f"; did you mean {meant}?"
            fix = set_field_fix(context, route, meant)
            help_text = f"{fix.title} if that is what you meant; otherwise"
        yield RULE.diagnostic(
            message,
            route,
            why=(
                "Its GPUs, memory and price are unknown, so the rules cannot check what runs on it."
            ),
            help=(
                f"{help_text} use `gcloud compute machine-types list --filter=name={name} "
                f"--zones={fields.zones[0]}` to check whether {name} exists"
            ),
            fix=fix,
        )


RULE = Rule(
    id="GCP001",
    name="machine-type-unknown",
    severity=Severity.UNKNOWN,
    sources=("Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",),
    check=_check,
    bad=examples(
        example_spec(machine_type="«g2-standart-8»"),
        example_spec("gpu: none\n", machine_type="«z9-standard-4»"),
    ),
    good=examples(
        example_spec(machine_type="g2-standard-8"),
        example_spec(machine_type="auto"),
        example_spec("gpu: T4\n", machine_type="n1-custom-8-30720"),
    ),
)
