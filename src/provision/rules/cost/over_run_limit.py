"""A job costs more than `cost` allows if it lasts for the whole `max_duration`.

## What it does

Multiplies the hourly price of all machines of a job on demand by `max_duration`, and compares it
with `cost.limit_per_run`. The price is that of the first region; the machines are assumed to cost
1.15 times Compute Engine's price. Jobs with another `capacity` are not compared, because their
price is not known. It is unknown if the tables have no price for the machine in the region. A limit
has no effect if the targets that cost money are of other kinds, which is a warning.

## Why

`max_duration` is the only limit on a job that hangs. Disks, traffic and taxes are not included.

## How to fix

Decrease `max_duration`, use fewer or cheaper machines, or raise the limit.
"""

from __future__ import annotations

import math

from provision.diagnostics import Severity
from provision.field_types import parse_duration, parse_size
from provision.kinds import VertexJobTarget
from provision.kinds.base import TargetFacts
from provision.kinds.vertex_job import JobCapacity
from provision.rules.examples import example_job, example_spec
from provision.rules.machine_requirements import find_machine_requirement
from provision.rules.rule import Findings, LintContext, Rule, examples, related_if_written

_LIMIT = ("cost", "limit_per_run")


def _check(context: LintContext) -> Findings:
    cost = context.spec.cost
    if cost is None or cost.limit_per_run is None:
        return
    jobs = tuple(context.targets_of(VertexJobTarget))
    if not jobs:
        yield RULE.diagnostic(
            "`limit_per_run` has no effect, because no target is of kind vertex-job",
            _LIMIT,
            severity=Severity.WARNING,
            why="Only jobs end after a time that the spec sets, so that the cost of a run is "
            "limited.",
            help="use `limit_per_hour`, or remove it",
        )
    for target, job in jobs:
        if job.capacity == JobCapacity():
            yield from _check_job(context, target, job, cost.limit_per_run)


def _check_job(
    context: LintContext, target: TargetFacts, job: VertexJobTarget, limit: float
) -> Findings:
    required = find_machine_requirement(context, target, "ram")
    ram_gib = parse_size(required.text) / 2**30 if required else None
    chosen = target._replace(target=target.kind.chosen_target(target, ram_gib, context.facts))
    offer = target.kind.machine_offer(chosen, context.facts)
    if offer is None:
        yield RULE.diagnostic(
            f"the price of the machines in {job.regions[0]} is unknown",
            _LIMIT,
            severity=Severity.UNKNOWN,
            why="Without it, the limit cannot be checked.",
            help="look it up in Google Cloud's pricing calculator; `provision facts list prices` "
            "lists the known prices",
        )
        return
    hourly = offer.dollars * job.replicas
    most = hourly * parse_duration(job.max_duration) / 3600
    if most <= limit:
        return
    machines = f"1 {offer.machine.name} costs"
    if job.replicas > 1:
        machines = f"{job.replicas} {offer.machine.name} cost"
    factor = context.facts.job_properties["price factor"].value
    hours = limit / hourly
    affordable = f"{math.floor(hours)}h" if hours >= 2 else f"{max(1, math.floor(hours * 60))}m"
    yield RULE.diagnostic(
        f"{machines} ${most:.2f} for {job.max_duration} in {offer.region} (as of "
        f"{offer.evidence.as_of}), which exceeds the limit of ${limit:.2f}",
        _LIMIT,
        evidence=offer.evidence,
        why="The price does not include disks, network traffic or taxes. Machines of a job are "
        f"assumed to cost {factor} times Compute Engine, which includes the management fee.",
        help=f"set `max_duration: {affordable}`, or raise the limit to "
        f"${math.ceil(round(most * 100, 4)) / 100:.2f}",
        related=related_if_written(context, target.route_to("max_duration"), "time set here"),
    )


_HEAD = "cost: {{limit_per_run: {}}}\ntraining: {{strategy: ddp}}\n"

RULE = Rule(
    id="CST002",
    name="over-run-limit",
    severity=Severity.ERROR,
    sources=(
        "Cyclenerd/google-cloud-pricing-cost-calculator pricing.yml",
        "skypilot-org/skypilot-catalog catalogs/v9/gcp/vms.csv",
    ),
    check=_check,
    bad=examples(
        example_job(_HEAD.format("«16»"), replicas="2", max_duration="10h"),
        example_job("cost: {limit_per_run: «0.5»}\n"),
        example_spec("gpu: L4\ncost: {limit_per_run: «5»}\n"),
    ),
    good=examples(
        example_job(_HEAD.format("17"), replicas="2", max_duration="10h"),
        example_job(_HEAD.format("0.1"), replicas="2", max_duration="10h", capacity="spot"),
        example_job("cost: {limit_per_hour: 3}\n", max_duration="100h"),
    ),
)
