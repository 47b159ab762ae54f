"""The machine type of a job is not offered for training, or does not have the requested GPUs.

## What it does

Looks up `machine_type` in the table of machine types that a worker pool may have, and compares it
with `gpu`. With `auto` it looks for a machine type with exactly the requested GPUs. A type that is
not in the table of Compute Engine's machine types is reported as unknown.

## Why

The service refuses a job with this combination. `gpu.count` is the number of GPUs in each machine.

## How to fix

Use the machine type that the finding names, or `machine_type: auto`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.job_machines import find_job_machines, is_job_machine
from provision.facts.machines import describe_gpu_mismatch
from provision.facts.schema_platforms import MachineType
from provision.kinds import VertexJobTarget
from provision.kinds.base import TargetFacts
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_gpu
from provision.rules.workbench_instances import nearest_machine
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    facts = context.facts
    for target, job in context.targets_of(VertexJobTarget):
        card, count = target.card, target.gpu_settings.gpu.count
        able = find_job_machines(facts, card, count)
        machine = facts.machines.get(job.machine_type)
        if job.machine_type == "auto":
            if card is not None and not able:
                yield RULE.diagnostic(
                    f"there is no machine type for jobs with {count} x {card.name}",
                    target.gpu_settings.gpu_route,
                    evidence=card.evidence,
                    why="`machine_type: auto` has nothing to choose from.",
                    help="use a different number of GPUs per machine, and adjust `replicas` "
                    "to match",
                    related=related_gpu(target),
                )
        elif machine is None:
            yield from _check_unknown(context, target, job.machine_type)
        else:
            yield from _check_machine(context, target, machine, able)


def _check_unknown(context: LintContext, target: TargetFacts, name: str) -> Findings:
    route = target.route_to("machine_type")
    names = [row.name for row in context.facts.machines.values() if _is_offered(context, row)]
    meant = nearest_word(name, names, 2)
    yield RULE.diagnostic(
        f"unknown machine type {name}" + (f"; did you mean {meant}?" if meant else ""),
        route,
        severity=Severity.UNKNOWN,
        why="The service refuses machine types that training does not offer.",
        help="set `machine_type: auto`, or use a machine type from the page about compute "
        "resources for training",
        fix=set_field_fix(context, route, meant) if meant else None,
    )


def _check_machine(
    context: LintContext, target: TargetFacts, machine: MachineType, able: tuple[MachineType, ...]
) -> Findings:
    route, card = target.route_to("machine_type"), target.card
    gpu = target.gpu_settings.gpu
    problem = describe_gpu_mismatch(context.facts, machine, card, gpu.count) if card else ""
    if not _is_offered(context, machine):
        what = f"{machine.name} is not offered for jobs"
        why = "The service refuses machine types that training does not offer."
    elif gpu.is_none and machine.gpus:
        what = f"{machine.name} has {machine.gpus:g} x {machine.card}, but no GPU is requested"
        why = "For such a machine, the job must request the GPUs."
    elif card is not None and problem:
        what = f"{gpu.count} x {card.name} is requested, but {machine.name} {problem}"
        why = "The service refuses a job with this combination."
    else:
        return
    near = nearest_machine(able, machine)
    fix = set_field_fix(context, route, near.name) if near else None
    yield RULE.diagnostic(
        what,
        route,
        evidence=next(iter(context.facts.job_series.values())).evidence,
        why=why,
        help=f"{fix.title}, or `machine_type: auto`" if fix else "use a different number of GPUs",
        related=related_gpu(target),
        fix=fix,
    )


def _is_offered(context: LintContext, machine: MachineType) -> bool:
    return is_job_machine(machine, context.facts)


RULE = Rule(
    id="GCP031",
    name="job-machine",
    severity=Severity.ERROR,
    sources=("Vertex AI documentation, Configure compute resources for training",),
    check=_check,
    bad=examples(
        example_job("", gpu="none", machine_type="«c3-standard-8»"),
        example_job("", gpu="none", machine_type="«n1-standard-2»"),
        example_job("", gpu="none", machine_type="«g2-standard-8»"),
        example_job("", gpu="none", machine_type="«n1-standart-8»"),
        example_job("", machine_type="«g2-standard-24»"),
        example(example_job("", gpu="«L4:3»", machine_type="auto"), other_ids=("TRN006",)),
    ),
    good=examples(
        example_job("", machine_type="g2-standard-8"),
        example_job("", gpu="none", machine_type="n1-standard-4"),
        example_job("", gpu="T4", machine_type="n1-standard-8"),
    ),
)
