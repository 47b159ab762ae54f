"""The machine costs more than `cost` allows.

## What it does

Adds up the hourly on-demand price of the machine type and its GPUs in the region of each zone, and
compares it with `cost.limit_per_hour`. With `machine_type: auto` it takes the cheapest machine type
that fits. It is an error if no zone is within the limit, a warning if some are not, and unknown if
the tables have no price of the machine in a region.

## Why

The limit is there so that no more expensive machine is created. Disks, traffic and taxes are not
included.

## How to fix

Use the region or machine type that the finding names, or raise the limit.
"""

from __future__ import annotations

import math

from provision.diagnostics import Severity
from provision.facts.machines import (
    MachineOffer,
    cheapest_offer,
    find_machines,
    list_offers,
    region_of,
)
from provision.facts.schema_platforms import MachineType
from provision.kinds import WorkbenchTarget
from provision.kinds.base import TargetFacts
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list

_LIMIT = ("cost", "limit_per_hour")


def _check(context: LintContext) -> Findings:
    if context.spec.cost is None:
        return
    limit = context.spec.cost.limit_per_hour
    for target, fields in context.targets_of(WorkbenchTarget):
        offers = _machine_offers(context, target, fields, fields.machine_type)
        regions = dict.fromkeys(map(region_of, fields.zones))
        cheapest = {region: cheapest_offer(offers, region) for region in regions}
        over = [offer for offer in cheapest.values() if offer and offer.dollars > limit]
        unknown = [region for region, offer in cheapest.items() if offer is None]
        related = related_at(target.route_to("zones"), "zones set here")
        if over:
            offer = min(over, key=lambda candidate: candidate.dollars)
            severity = None
            why = "Disks, traffic and taxes are not included."
            if len(over) + len(unknown) < len(regions):
                severity = Severity.WARNING
                why += " Other zones of this target are within the limit."
            suitable = _machine_offers(context, target, fields, "auto")
            yield RULE.diagnostic(
                f"{_describe_machine(offer, target)} costs {_format_price(offer.dollars)} per hour "
                f"in {offer.region} (as of {offer.evidence.as_of}), which exceeds the limit of "
                f"{_format_price(limit)}",
                _LIMIT,
                severity=severity,
                evidence=offer.evidence,
                why=why,
                help=f"{_cheaper_alternative(target, suitable, offer, limit)}, or raise the limit "
                f"to {math.ceil(round(offer.dollars * 100, 4)) / 100:.2f}",
                related=related,
            )
        elif unknown:
            machine = fields.machine_type
            if machine == "auto":
                machine = "a suitable machine"
            yield RULE.diagnostic(
                f"the price of {machine} in {format_list(unknown)} is unknown",
                _LIMIT,
                severity=Severity.UNKNOWN,
                why="The limit cannot be checked without it.",
                help="look it up in Google Cloud's pricing calculator; `provision facts list "
                "prices` lists the known prices",
                related=related,
            )


def _machine_offers(
    context: LintContext, target: TargetFacts, fields: WorkbenchTarget, machine_type: str
) -> tuple[MachineOffer, ...]:
    """Return the prices of a machine type; of all with the target's GPUs for "auto"."""
    card = target.card
    count = target.gpu_settings.gpu.count
    machine = context.facts.machines.get(machine_type)
    machines: tuple[MachineType, ...] = (machine,) if machine else ()
    if machine_type == "auto" and card:
        reserved = fields.reservation is not None
        machines = find_machines(context.facts, card, count, reserved=reserved)
    return list_offers(machines, card, count)


def _cheaper_alternative(
    target: TargetFacts, offers: tuple[MachineOffer, ...], offer: MachineOffer, limit: float
) -> str:
    """Return a help text with a machine within the limit, preferably in the same region."""
    within = [candidate for candidate in offers if candidate.dollars <= limit]
    if not within:
        return "use another GPU"
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
    ),
    good=examples(
        example_spec("gpu: L4\ncost: {limit_per_hour: 0.86}\n"),
        example_spec("gpu: T4\ncost: {limit_per_hour: 0.54}\n", machine_type="auto"),
        example_spec("gpu: L4\n"),
    ),
)
