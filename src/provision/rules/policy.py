"""A policy of a project: what its specs may declare, and which rules cannot be ignored.

A policy is not a rule: its findings cannot be accepted, deselected or lowered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.diagnostics import (
    Diagnostic,
    Route,
    RouteLocation,
    Span,
    SuppressedFinding,
)
from provision.facts.machines import cheapest_offer, find_machines, list_offers, region_of
from provision.facts.schema_platforms import MachineType
from provision.kinds.base import TargetFacts
from provision.rules.rule import LintContext
from provision.source.findings import make_finding

ANY_TARGET = "*"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the specs of a project may declare; None for no limit.

    Attributes:
        name: the display name of the file.
        lines: the line of each key.
        gpus: the cards that targets may have.
        regions: the regions that targets may be in.
        machine_families: the families of machine types, such as "g2".
        max_hourly_cost: the most US dollars an hour that a machine may cost on demand.
        required_fields: routes that each spec has to set; "*" is every target.
        never_ignore: rules or areas whose findings cannot be accepted.
    """

    name: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)
    gpus: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    machine_families: tuple[str, ...] | None = None
    max_hourly_cost: float | None = None
    required_fields: tuple[Route, ...] = ()
    never_ignore: tuple[str, ...] = ()

    def line(self, key: str) -> str:
        """Return the file and the line of a key."""
        return f"{self.name}:{self.lines.get(key, 1)}"


def check_policy(
    policy: Policy, context: LintContext, data: Mapping[str, Any]
) -> Iterator[Diagnostic]:
    """Yield what a valid spec declares against a policy; `data` are its fields as written."""
    for target in context.targets:
        yield from _check_gpu(policy, target)
        yield from _check_machine(policy, target, context)
    for route in policy.required_fields:
        for missing in _find_missing(route, data):
            yield _finding(
                policy,
                "required-fields",
                "policy-field-missing",
                f"the policy requires {_join(missing)}",
                missing,
                f"set {_join(missing)}",
            )


def report_ignored(policy: Policy, item: SuppressedFinding) -> Diagnostic:
    """Return the finding about an accepted finding of a rule that cannot be ignored."""
    where = item.where or item.finding.where
    return _finding(
        policy,
        "never-ignore",
        "policy-rule-ignored",
        f"the policy does not allow {item.finding.id} findings to be ignored",
        where,
        "fix the finding, and remove the comment or setting that ignores it",
    )


def _check_gpu(policy: Policy, target: TargetFacts) -> Iterator[Diagnostic]:
    settings = target.gpu_settings
    if policy.gpus is None or not settings.is_nvidia:
        return
    card = target.card.name if target.card else settings.gpu.type
    if card not in policy.gpus and settings.gpu.type not in policy.gpus:
        yield _finding(
            policy,
            "gpus",
            "policy-gpu",
            f"the policy does not allow the GPU {card} on target `{target.name}`",
            settings.gpu_route,
            f"use {', '.join(policy.gpus) or '`gpu: none`'}",
        )


def _check_machine(
    policy: Policy, target: TargetFacts, context: LintContext
) -> Iterator[Diagnostic]:
    """Check the fields that kinds on Google Cloud have: zones or a region, and a machine type."""
    fields = target.target
    zones = getattr(fields, "zones", None) or []
    region = getattr(fields, "region", None)
    places = [
        (target.route_to("zones", index), region_of(zone)) for index, zone in enumerate(zones)
    ]
    if region is not None:
        places.append((target.route_to("region"), region))
    for route, name in places:
        if policy.regions is not None and name not in policy.regions:
            message = f"the policy does not allow the region {name} for target `{target.name}`"
            hint = f"use {', '.join(policy.regions)}"
            yield _finding(policy, "regions", "policy-region", message, route, hint)
    machine_type = getattr(fields, "machine_type", None)
    if machine_type is None:
        return
    route = target.route_to("machine_type")
    families = policy.machine_families
    if families is not None and machine_type.partition("-")[0] not in families:
        message = f"the policy does not allow the machine type {machine_type}"
        hint = f"use a machine type from {', '.join(families)}"
        yield _finding(policy, "machine-families", "policy-machine", message, route, hint)
    if policy.max_hourly_cost is not None:
        regions = dict.fromkeys(name for _, name in places)
        yield from _check_cost(policy, target, context, list(regions), machine_type)


def _check_cost(
    policy: Policy,
    target: TargetFacts,
    context: LintContext,
    regions: list[str],
    machine_type: str,
) -> Iterator[Diagnostic]:
    card, count = target.card, target.gpu_settings.gpu.count
    machine = context.facts.machines.get(machine_type)
    machines: tuple[MachineType, ...] = (machine,) if machine else ()
    if machine_type == "auto" and card:
        machines = find_machines(context.facts, card, count, reserved=False)
    offers = list_offers(machines, card, count)
    limit = policy.max_hourly_cost or 0.0
    for region in regions:
        offer = cheapest_offer(offers, region)
        message = ""
        if offer is None:
            message = f"the price of {machine_type} in {region} is unknown"
        elif offer.dollars > limit:
            message = (
                f"{offer.machine.name} on target `{target.name}` costs ${offer.dollars:.2f} per "
                f"hour in {region}, but the policy allows ${limit:.2f}"
            )
        if message:
            hint = "use a smaller machine or GPU, or a different region"
            route = target.route_to("machine_type")
            yield _finding(policy, "max-hourly-cost", "policy-cost", message, route, hint)


def _find_missing(route: Route, data: Mapping[str, Any]) -> Iterator[Route]:
    """Yield the routes of a required field that a spec does not set."""
    if route[:2] == ("targets", ANY_TARGET):
        for name in data.get("targets") or {}:
            yield from _find_missing(("targets", name, *route[2:]), data)
        return
    value: Any = data
    for part in route:
        if not isinstance(value, Mapping) or value.get(part) is None:
            yield route
            return
        value = value[part]


def _finding(
    policy: Policy,
    key: str,
    name: str,
    message: str,
    where: Route | RouteLocation | Span,
    hint: str,
) -> Diagnostic:
    location = where if isinstance(where, Span | RouteLocation) else RouteLocation(where)
    line = policy.line(key)
    finding = make_finding(name, message, location, why=f"`{key}` is set in {line}", hint=hint)
    return finding._replace(source=f"policy {line}")


def _join(route: Route) -> str:
    return ".".join(map(str, route))
