"""The required RAM is more than a small machine leaves to a job.

## What it does

Compares `requires.ram` with the part of the RAM that is left on a machine with at most 16 GiB.
According to Google, its own agents take up to 40 % on the smallest machine types, such as
n1-standard-4, and little on larger ones; the limit of 16 GiB is our choice. With `machine_type:
auto`, this is the cheapest machine type with the required RAM.

## Why

The verification compares the RAM of the machine and passes. The program is then ended when the
memory runs out.

## How to fix

Use the machine type that the finding names, or require less.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.field_types import parse_size
from provision.kinds import VertexJobTarget
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_job
from provision.rules.machine_requirements import find_machine_requirement
from provision.rules.memory.capacity import GIB, format_size
from provision.rules.rule import Findings, LintContext, Rule, examples, related_if_written

_SMALL_GIB = 16


def _check(context: LintContext) -> Findings:
    share = context.facts.job_properties["system memory share"]
    for target, _ in context.targets_of(VertexJobTarget):
        required = find_machine_requirement(context, target, "ram")
        if required is None:
            continue
        size = parse_size(required.text)
        chosen = target.kind.chosen_target(target, size / GIB, context.facts)
        machine = context.facts.machines.get(getattr(chosen, "machine_type", ""))
        if machine is None or machine.ram_gb > _SMALL_GIB or size > machine.ram_gb * GIB:
            continue  # MEM003 reports a machine that has less
        left = machine.ram_gb * GIB * (1 - float(share.value))
        if size <= left:
            continue
        larger = target.kind.machine_with_ram(_SMALL_GIB + 1, target, context.facts)
        help_text, fix = f"require at most {format_size(left)}", None
        if larger:
            fix = set_field_fix(context, (*target.route, larger.field), larger.value)
            help_text = (
                f"set `{larger.field}: {larger.value}`, which has {larger.ram_gib:g} GiB, or "
                f"{help_text}"
            )
        yield RULE.diagnostic(
            f"{required.text} of RAM is required, but {machine.name} may leave only "
            f"{format_size(left)} of its {machine.ram_gb:g} GiB",
            required.route,
            evidence=share.evidence,
            why=f"Agents of Vertex AI take up to {float(share.value):.0%} of the RAM of the "
            "smallest machine types.",
            help=help_text,
            related=related_if_written(
                context, target.route_to("machine_type"), "machine requested here"
            ),
            fix=fix,
        )


_SMALL = {"gpu": "none", "machine_type": "n1-standard-4"}

RULE = Rule(
    id="MEM009",
    name="job-small-machine-ram",
    severity=Severity.WARNING,
    sources=("Vertex AI documentation, Understand the training service, errors",),
    check=_check,
    bad=examples(
        example_job("requires: {ram: «10GiB»}\n", **_SMALL),
        example_job("requires: {ram: «16GiB»}\n", gpu="none"),
    ),
    good=examples(
        example_job("requires: {ram: 9GiB}\n", **_SMALL),
        example_job("requires: {ram: 16GiB}\n", gpu="none", machine_type="n1-standard-8"),
        example_job("requires: {ram: 16GiB}\n", machine_type="g2-standard-8"),
    ),
)
