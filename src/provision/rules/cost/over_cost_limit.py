"""The machine costs more than `cost` allows.

## What it does

Adds up the hourly on-demand price of the machine type and its GPUs in the region of each zone, and
compares it with `cost.limit_per_hour`. With `machine_type: auto` it takes the cheapest machine type
that fits. A machine of Colab Enterprise is assumed to cost 1.2 times as much, which is a warning
because its price is not certain. The machines of a job on demand are assumed to cost 1.15 times as
much, all of them together. It is an error if no zone is within the limit, a warning if some are
not, and unknown if the tables have no price for the machine in a region.

## Why

The limit ensures that no more expensive machine is created. Disks, traffic and taxes are not
included.

## How to fix

Use the region or machine type that the finding names, or raise the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from provision.diagnostics import Severity
from provision.facts.job_machines import find_job_machines
from provision.facts.machines import (
    MachineOffer,
    cheapest_offer,
    find_machines,
    list_offers,
    region_of,
)
from provision.facts.schema_platforms import ColabProperty, MachineType
from provision.facts.schema_vertex import JobProperty
from provision.kinds import ColabEnterpriseTarget, VertexJobTarget, WorkbenchTarget
from provision.kinds.base import TargetFacts
from provision.kinds.vertex_job import JobCapacity
from provision.rules.examples import example_job, example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list

_LIMIT = ("cost", "limit_per_hour")


class _Machine(NamedTuple):
    """The machines of a target: type, regions with the field that sets them, prices, their number.

    `factor` is the kind's price, as a multiple of Compute Engine's; None is Compute Engine's own.
    """

    target: TargetFacts
    machine_type: str
    regions: tuple[str, ...]
    field: str
    reserved: bool
    factor: ColabProperty | JobProperty | None = None
    machines: int = 1


def _check(context: LintContext) -> Findings:
    if context.spec.cost is None:
        return
    limit = context.spec.cost.limit_per_hour
    if limit is None:
        return
    for machine in _list_machines(context):
        target, regions = machine.target, machine.regions
        offers = _machine_offers(context, machine, machine.machine_type)
        cheapest = {region: cheapest_offer(offers, region) for region in regions}
        over = [offer for offer in cheapest.values() if offer and offer.dollars > limit]
        unknown = [region for region, offer in cheapest.items() if offer is None]
        related = related_at(target.route_to(machine.field), f"{machine.field} set here")
        if over:
            offer = min(over, key=lambda candidate: candidate.dollars)
            severity = None
            why = "The price does not include disks, network traffic or taxes."
            if machine.factor is not None:
                why = f"{why} {_describe_factor(machine)}"
            if len(over) + len(unknown) < len(regions):
                severity = Severity.WARNING
                why += " The other zones of this target are within the limit."
            suitable = _machine_offers(context, machine, "auto")
            yield RULE.diagnostic(
                f"{_describe_machine(offer, target)} costs {_format_price(offer.dollars)} per hour "
                f"in {offer.region} (as of {offer.evidence.as_of}), which exceeds the limit of "
                f"{_format_price(limit)}",
                _LIMIT,
                severity=severity,
                evidence=offer.evidence,
                why=why,
                help=f"{_cheaper_alternative(target, suitable, offer, limit)}, or raise the limit "
                f"to ${math.ceil(round(offer.dollars * 100, 4)) / 100:.2f}",
                related=related,
            )
        elif unknown:
            name = machine.machine_type
            if name == "auto":
                name = "a suitable machine"
            yield RULE.diagnostic(
                f"the price of {name} in {format_list(unknown)} is unknown",
                _LIMIT,
                severity=Severity.UNKNOWN,
                why="Without it, the limit cannot be checked.",
                help="look it up in Google Cloud's pricing calculator; `provision facts list "
                "prices` lists the known prices",
                related=related,
            )


def _list_machines(context: LintContext) -> Iterator[_Machine]:
    for target, fields in context.targets_of(WorkbenchTarget):
        regions = tuple(dict.fromkeys(map(region_of, fields.zones)))
        reserved = fields.reservation is not None
        yield _Machine(target, fields.machine_type, regions, "zones", reserved)
    factor = context.facts.conditions["enterprise price"]
    for target, enterprise in context.targets_of(ColabEnterpriseTarget):
        regions, reserved = (enterprise.region,), enterprise.reservation is not None
        yield _Machine(target, enterprise.machine_type, regions, "region", reserved, factor)
    job_factor = context.facts.job_properties["price factor"]
    for target, job in context.targets_of(VertexJobTarget):
        if job.capacity == JobCapacity():  # the other prices are not known
            regions = tuple(dict.fromkeys(job.regions))
            yield _Machine(
                target, job.machine_type, regions, "regions", False, job_factor, job.replicas
            )


def _machine_offers(
    context: LintContext, priced: _Machine, machine_type: str
) -> tuple[MachineOffer, ...]:
    """Return the prices of a machine type; of all with the target's GPUs for "auto"."""
    card = priced.target.card
    count = priced.target.gpu_settings.gpu.count
    machine = context.facts.machines.get(machine_type)
    machines: tuple[MachineType, ...] = (machine,) if machine else ()
    if machine_type == "auto" and card:
        machines = find_machines(context.facts, card, count, reserved=priced.reserved)
    if machine_type == "auto" and isinstance(priced.factor, JobProperty):
        machines = find_job_machines(context.facts, card, count)
    offers = list_offers(machines, card, count)
    if priced.factor is None:
        return offers
    value, evidence = float(priced.factor.value) * priced.machines, priced.factor.evidence
    return tuple(
        offer._replace(dollars=offer.dollars * value, evidence=evidence) for offer in offers
    )


def _describe_factor(machine: _Machine) -> str:
    factor = machine.factor
    assert factor is not None  # noqa: S101
    if isinstance(factor, JobProperty):
        machines = "one machine" if machine.machines == 1 else f"{machine.machines} machines"
        return (
            f"This is the price of {machines}; in a job they are assumed to cost {factor.value} "
            "times Compute Engine, which includes the management fee."
        )
    return (
        f"Colab Enterprise is assumed to cost {factor.value} times Compute Engine, as its vCPUs "
        "and memory do."
    )


def _cheaper_alternative(
    target: TargetFacts, offers: tuple[MachineOffer, ...], offer: MachineOffer, limit: float
) -> str:
    """Return a help text with a machine within the limit, preferably in the same region."""
    within = [candidate for candidate in offers if candidate.dollars <= limit]
    if not within:
        return "use a different GPU"
    others = [
        candidate
        for candidate in within
        if candidate.region == offer.region and candidate.machine != offer.machine
    ]
    if others:
        best = max(others, key=lambda candidate: (candidate.machine.vcpus, -candidate.dollars))
    else:
        best = min(within, key=lambda candidate: candidate.dollars)
    machine = _describe_machine(best, target)
    return f"use {machine} in {best.region} for {_format_price(best.dollars)}"


def _format_price(dollars: float) -> str:
    if round(dollars, 2) == round(dollars, 4):
        return f"${dollars:.2f}"
    return f"${dollars:.4f}"


def _describe_machine(offer: MachineOffer, target: TargetFacts) -> str:
    if target.card is not None and not offer.machine.gpus:
        return f"{offer.machine.name} with {target.gpu_settings.gpu}"
    return offer.machine.name


_ENTERPRISE = """\
gpu: T4
python: "3.12"
packages: [torch]
cost: {{limit_per_hour: {limit}}}
targets: {{t: {{kind: colab-enterprise, project: my-project, region: us-central1}}}}
"""

_JOB = "cost: {{limit_per_hour: {}}}\ntraining: {{strategy: ddp}}\n"

RULE = Rule(
    id="CST001",
    name="over-cost-limit",
    severity=Severity.ERROR,
    sources=(
        "Cyclenerd/google-cloud-pricing-cost-calculator pricing.yml",
        "skypilot-org/skypilot-catalog catalogs/v9/gcp/vms.csv",
    ),
    check=_check,
    bad=examples(
        example_spec("gpu: L4\ncost: {limit_per_hour: «0.85»}\n"),
        example_spec("gpu: T4\ncost: {limit_per_hour: «0.5»}\n", machine_type="n1-standard-4"),
        example_spec("gpu: T4\ncost: {limit_per_hour: «9»}\n", machine_type="n1-standard-8"),
        _ENTERPRISE.format(limit="«0.4»"),
        example_job(_JOB.format("«1.62»"), replicas="2", max_duration="4h"),
    ),
    good=examples(
        example_spec("gpu: L4\ncost: {limit_per_hour: 0.86}\n"),
        example_spec("gpu: T4\ncost: {limit_per_hour: 0.54}\n", machine_type="auto"),
        example_spec("gpu: L4\n"),
        _ENTERPRISE.format(limit="0.66"),
        example_job(_JOB.format("1.63"), replicas="2"),
        example_job(_JOB.format("0.1"), replicas="2", capacity="{flex_start: 1h}"),
    ),
)
