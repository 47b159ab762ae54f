"""The machine type of a runtime template is unknown, or does not have the requested GPUs.

## What it does

Looks up `machine_type` in the table of Compute Engine's machine types, and compares it with `gpu`:
G2 and A2 types have a fixed number of one GPU model, T4 and V100 GPUs are attached to N1 types, and
other types have no GPU. With `auto` it looks for a machine type with exactly the requested GPUs. A
type that is not in the table is reported as unknown.

## Why

Colab Enterprise rejects a runtime template with this combination.

## How to fix

Use the machine type that the finding names, or `machine_type: auto`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.machines import describe_gpu_mismatch, find_machines
from provision.kinds import ColabEnterpriseTarget
from provision.kinds.base import TargetFacts
from provision.rules.edits import set_field_fix
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_gpu
from provision.rules.workbench_instances import nearest_machine
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(ColabEnterpriseTarget):
        if fields.machine_type == "auto":
            yield from _check_automatic(context, target, fields)
        elif fields.machine_type in context.facts.machines:
            yield from _check_gpu(context, target, fields)
        elif "custom-" not in fields.machine_type:
            meant = nearest_word(fields.machine_type, context.facts.machines, 2)
            route = target.route_to("machine_type")
            suffix = f"; did you mean {meant}?" if meant else ""
            yield RULE.diagnostic(
                f"unknown machine type {fields.machine_type}{suffix}",
                route,
                severity=Severity.UNKNOWN,
                why="The service refuses machine types that do not exist in the region.",
                help=(
                    "set `machine_type: auto`, or list the machine types with `gcloud compute "
                    f"machine-types list --filter=zone:{fields.region}`"
                ),
                fix=set_field_fix(context, route, meant) if meant else None,
            )


def _check_automatic(
    context: LintContext, target: TargetFacts, fields: ColabEnterpriseTarget
) -> Findings:
    card, gpu = target.card, target.gpu_settings.gpu
    offered = context.facts.conditions["enterprise cards"].value.split()
    if card is None or card.name not in offered:
        return
    reserved = fields.reservation is not None
    if not find_machines(context.facts, card, gpu.count, reserved=reserved):
        yield RULE.diagnostic(
            f"there is no machine type with {gpu.count} x {card.name}",
            target.gpu_settings.gpu_route,
            evidence=card.evidence,
            why="`machine_type: auto` has nothing to choose from.",
            help="use a different number of GPUs",
            related=related_gpu(target),
        )


def _check_gpu(
    context: LintContext, target: TargetFacts, fields: ColabEnterpriseTarget
) -> Findings:
    machine, card = context.facts.machines[fields.machine_type], target.card
    gpu, route = target.gpu_settings.gpu, target.route_to("machine_type")
    if gpu.is_none and machine.gpus:
        yield RULE.diagnostic(
            f"{machine.name} has {machine.gpus:g} x {machine.card}, but no GPU is requested",
            route,
            evidence=machine.evidence,
            why="A template with this machine type must also request its GPUs.",
            help=(
                f"set `gpu: {machine.card}`, or use a machine type without a GPU, such as "
                "e2-standard-8"
            ),
            related=related_gpu(target),
        )
    problem = describe_gpu_mismatch(context.facts, machine, card, gpu.count) if card else ""
    if card is None or not problem:
        return
    reserved = fields.reservation is not None
    machines = find_machines(context.facts, card, gpu.count, reserved=reserved)
    near = nearest_machine(machines, machine)
    fix = set_field_fix(context, route, near.name) if near else None
    yield RULE.diagnostic(
        f"{gpu.count} x {card.name} is requested, but {machine.name} {problem}",
        route,
        evidence=machine.evidence,
        why="Colab Enterprise rejects a runtime template with this combination.",
        help=f"{fix.title}, or `machine_type: auto`" if fix else "use a different number of GPUs",
        related=related_gpu(target),
        fix=fix,
    )


_SPEC = """\
gpu: {gpu}
python: "3.12"
packages: [{packages}]
targets:
  t: {{kind: colab-enterprise, project: my-project, region: us-central1, machine_type: {machine}}}
"""


def _spec(gpu: str, machine: str) -> str:
    return _SPEC.format(gpu=gpu, packages="" if gpu == "none" else "torch", machine=machine)


RULE = Rule(
    id="GCP028",
    name="enterprise-machine",
    severity=Severity.ERROR,
    sources=(
        "Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",
        "hashicorp/terraform-provider-google resource_colab_runtime_template.go",
    ),
    check=_check,
    bad=examples(
        _spec("T4", "«e2-standard-4»"),
        _spec("L4", "«g2-standard-24»"),
        _spec("none", "«g2-standard-4»"),
        _spec("none", "«e2-standart-4»"),
        example(_spec("«L4:3»", "auto"), other_ids=("TRN006",)),
    ),
    good=examples(
        _spec("T4", "n1-standard-8"),
        _spec("L4", "g2-standard-8"),
        _spec("none", "e2-standard-8"),
        _spec("L4", "auto"),
    ),
)
