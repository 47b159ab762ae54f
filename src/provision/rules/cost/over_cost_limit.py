"""The machine costs more than `cost` allows.

## What it does

Adds up what the machine type and its GPUs cost an hour in the region of each zone, on demand, and
compares it with `cost.limit_per_hour`. With `machine_type: auto` the cheapest machine type that
fits counts. It is an error when no zone is within the limit, a warning when some are not; unknown
where the tables have no price of the machine in a region.

## Why

The limit was set so that nothing dearer is made. Disks, traffic and taxes come on top.

## How to fix

Take the region or machine type that is named, or raise the limit.
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
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list
from provision.rules.workbench_instances import WorkbenchTargetFacts, workbench_instances


def _check(context: LintContext) -> Findings:
    if context.spec.cost is None:
        return
    limit = context.spec.cost.limit_per_hour
    for instance in workbench_instances(context):
        machine_type = instance.target.machine_type
        offers = _machine_offers(context, instance, machine_type)
        regions = dict.fromkeys(map(region_of, instance.target.zones))
        cheapest = {region: cheapest_offer(offers, region) for region in regions}
        over = [offer for offer in cheapest.values() if offer and offer.dollars > limit]
        unknown = [region for region, offer in cheapest.items() if offer is None]
        related = related_at(instance.route("zones"), "zones asked for here")
        if over:
            offer = min(over, key=lambda candidate: candidate.dollars)
            severity = None
            why = "Disks, traffic and taxes come on top."
            if len(over) + len(unknown) < len(regions):
                severity = Severity.WARNING
                why += " Other zones of this target are within the limit."
            yield RULE.diagnostic(
                f"{_describe_machine(offer, instance)} costs {_format_price(offer.dollars)} an "
                f"hour in {offer.region} (as of {offer.evidence.as_of}), over "
                f"{_format_price(limit)}",
                ("cost", "limit_per_hour"),
                severity=severity,
                evidence=offer.evidence,
                why=why,
                help=f"{_cheaper_alternative(context, instance, offer, limit)}raise the limit to "
                f"{math.ceil(round(offer.dollars * 100, 4)) / 100:.2f}",
                related=related,
            )
        elif unknown:
            machine = "a machine that fits" if machine_type == "auto" else machine_type
            yield RULE.diagnostic(
                f"the tables have no price of {machine} in {format_list(unknown)}",
                ("cost", "limit_per_hour"),
                severity=Severity.UNKNOWN,
                why="Whether it is within the limit is not known.",
                help="look it up in Google Cloud's pricing calculator; what is known, this shows: "
                "provision facts list prices",
                related=related,
            )


def _machine_offers(
    context: LintContext, instance: WorkbenchTargetFacts, machine_type: str
) -> tuple[MachineOffer, ...]:
    """Return the prices of a machine type; of all with the target's cards for "auto"."""
    card = instance.facts.card
    count = instance.facts.gpu_settings.gpu.count
    machine = context.facts.machines.get(machine_type)
    machines: tuple[MachineType, ...] = (machine,) if machine else ()
    if machine_type == "auto" and card:
        machines = find_machines(context.facts, card, count, reserved=instance.reserved)
    return list_offers(machines, card, count)


def _cheaper_alternative(
    context: LintContext, instance: WorkbenchTargetFacts, offer: MachineOffer, limit: float
) -> str:
    """Return a help text with a machine within the limit, preferably in the same region."""
    offers = _machine_offers(context, instance, "auto")
    within = [candidate for candidate in offers if candidate.dollars <= limit]
    if not within:
        return "ask for another card, or "
    others = [
        candidate
        for candidate in within
        if candidate.region == offer.region and candidate.machine != offer.machine
    ]
    if others:
        best = max(others, key=lambda candidate: (candidate.machine.vcpus, -candidate.dollars))
    else:
        best = min(within, key=lambda candidate: candidate.dollars)
    machine = _describe_machine(best, instance)
    return f"take {machine} in {best.region} for {_format_price(best.dollars)}, or "


def _format_price(dollars: float) -> str:
    if round(dollars, 2) == round(dollars, 4):
        return f"${dollars:.2f}"
    return f"${dollars:.4f}"


def _describe_machine(offer: MachineOffer, instance: WorkbenchTargetFacts) -> str:
    if instance.facts.card is not None and not offer.machine.gpus:
        return f"{offer.machine.name} with {instance.facts.gpu_settings.gpu}"
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
    bad=(
        Example(example_spec("gpu: L4\ncost: {limit_per_hour: 0.85}\n"), "0.85"),
        Example(
            example_spec("gpu: T4\ncost: {limit_per_hour: 0.5}\n", machine_type="n1-standard-4"),
            "0.5",
        ),
        Example(
            example_spec("gpu: T4\ncost: {limit_per_hour: 9}\n", machine_type="n1-standard-8"), "9"
        ),
    ),
    good=examples(
        example_spec("gpu: L4\ncost: {limit_per_hour: 0.86}\n"),
        example_spec("gpu: T4\ncost: {limit_per_hour: 0.54}\n", machine_type="auto"),
        example_spec("gpu: L4\n"),
    ),
)
