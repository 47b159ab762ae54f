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

from provision.diagnostics import Diagnostic, Severity
from provision.facts.machines import (
    MachineOffer,
    cheapest_offer,
    find_machines,
    list_offers,
    region_of,
)
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list
from provision.rules.workbench_instances import WorkbenchInstance, workbench_instances


def _check(context: LintContext) -> Findings:
    if context.spec.cost is None:
        return
    limit = context.spec.cost.limit_per_hour
    for instance in workbench_instances(context):
        known = _machine_offers(context, instance)
        here = [cheapest_offer(known, region_of(zone)) for zone in instance.target.zones]
        over = [offer for offer in here if offer is not None and offer.dollars > limit]
        if over:
            yield _over_limit_finding(
                context,
                instance,
                over,
                limit,
                every=not any(offer and offer.dollars <= limit for offer in here),
            )
        elif unknown := [
            region_of(zone)
            for zone, offer in zip(instance.target.zones, here, strict=True)
            if offer is None
        ]:
            if instance.target.machine_type == "auto":
                machine = "a machine that fits"
            else:
                machine = instance.target.machine_type
            yield RULE.diagnostic(
                f"the tables have no price of {machine} in "
                f"{format_list(tuple(dict.fromkeys(unknown)))}",
                ("cost", "limit_per_hour"),
                severity=Severity.UNKNOWN,
                why="Whether it is within the limit is not known.",
                help="look it up in Google Cloud's pricing calculator; what is known, this shows: "
                "provision facts list prices",
                related=related_at(instance.route("zones"), "zones asked for here"),
            )


def _machine_offers(
    context: LintContext, instance: WorkbenchInstance, *, any_type: bool = False
) -> tuple[MachineOffer, ...]:
    """Return the prices of the target's machine types, or with `any_type` of all with its cards."""
    card = instance.facts.card
    count = instance.facts.gpu_settings.gpu.count
    if any_type or instance.target.machine_type == "auto":
        return list_offers(
            find_machines(context.facts, card, count, reserved=instance.reserved) if card else (),
            card,
            count,
        )
    machine = context.facts.machines.get(instance.target.machine_type)
    return list_offers((machine,) if machine else (), card, count)


def _over_limit_finding(
    context: LintContext,
    instance: WorkbenchInstance,
    over: list[MachineOffer],
    limit: float,
    *,
    every: bool,
) -> Diagnostic:
    offer = min(over, key=lambda candidate: candidate.dollars)
    return RULE.diagnostic(
        f"{_describe_machine(offer, instance)} costs {_format_price(offer.dollars)} an hour in "
        f"{offer.region} (as of {offer.evidence.as_of}), over {_format_price(limit)}",
        ("cost", "limit_per_hour"),
        severity=offer.evidence.cap_severity(Severity.ERROR) if every else Severity.WARNING,
        why="Disks, traffic and taxes come on top."
        + ("" if every else " Other zones of this target are within the limit."),
        help=f"{_cheaper_alternative(context, instance, offer, limit)}raise the limit to "
        f"{math.ceil(round(offer.dollars * 100, 4)) / 100:.2f}",
        related=related_at(instance.route("zones"), "zones asked for here"),
    )


def _cheaper_alternative(
    context: LintContext, instance: WorkbenchInstance, offer: MachineOffer, limit: float
) -> str:
    """Return a help text with a machine within the limit, preferably in the same region."""
    offers = _machine_offers(context, instance, any_type=True)
    within = [candidate for candidate in offers if candidate.dollars <= limit]
    if not within:
        return "ask for another card, or "
    in_region = [candidate for candidate in within if candidate.region == offer.region]
    others = [candidate for candidate in in_region if candidate.machine != offer.machine]
    if others:
        best = max(others, key=lambda candidate: (candidate.machine.vcpus, -candidate.dollars))
    else:
        best = min(within, key=lambda candidate: candidate.dollars)
    machine = _describe_machine(best, instance)
    price = _format_price(best.dollars)
    return f"take {machine} in {best.region} for {price}, or "


def _format_price(dollars: float) -> str:
    if round(dollars, 2) == round(dollars, 4):
        return f"${dollars:.2f}"
    return f"${dollars:.4f}"


def _describe_machine(offer: MachineOffer, instance: WorkbenchInstance) -> str:
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
