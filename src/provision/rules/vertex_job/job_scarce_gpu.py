"""A job requests a scarce GPU on demand.

## What it does

Finds GPUs for which Google recommends a reservation or Spot, and those that require a reservation,
in a job with neither.

## Why

On demand, such a job usually waits, and then fails because the region has no capacity. A GPU that
requires a reservation is refused.

## How to fix

Set `capacity` to a reservation, to `spot`, to a persistent resource or, if the GPU supports it, to
`flex_start`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples, related_gpu


def _check(context: LintContext) -> Findings:
    properties = context.facts.job_properties
    scarce, reserved = properties["scarce GPUs"], properties["reserved GPUs"]
    for target, job in context.targets_of(VertexJobTarget):
        card, capacity = target.card, job.capacity
        if card is None or capacity.reservation or capacity.persistent_resource:
            continue
        route = target.route_to("capacity" if "capacity" in job.model_fields_set else "kind")
        if card.name in reserved.value.split():
            yield RULE.diagnostic(
                f"{card.name} requires a reservation",
                route,
                evidence=reserved.evidence,
                why="Vertex AI makes this GPU available to jobs only through a shared reservation.",
                help="set `capacity: {reservation: projects/PROJECT/zones/ZONE/reservations/NAME}`",
                related=related_gpu(target),
            )
        elif card.name in scarce.value.split():
            if capacity.strategy == "spot" or capacity.flex_start:
                continue
            yield RULE.diagnostic(
                f"{card.name} is rarely available on demand",
                route,
                severity=Severity.WARNING,
                evidence=scarce.evidence,
                why="Google recommends a shared reservation or Spot for this GPU.",
                help="set `capacity: spot`, or use a reservation",
                related=related_gpu(target),
            )


_DISK = "{type: hyperdisk-balanced}"

RULE = Rule(
    id="GCP033",
    name="job-scarce-gpu",
    severity=Severity.ERROR,
    sources=("Vertex AI documentation, Configure compute resources for training",),
    check=_check,
    bad=examples(
        example_job(
            "training: {strategy: ddp}\n", gpu="B200:8", capacity="«standard»", boot_disk=_DISK
        ),
        example_job(
            "training: {strategy: ddp}\n", gpu="H200-141GB:8", kind="«vertex-job»", boot_disk=_DISK
        ),
    ),
    good=examples(
        example_job(
            "training: {strategy: ddp}\n",
            gpu="B200:8",
            capacity="{flex_start: 2h}",
            boot_disk=_DISK,
        ),
        example_job(
            "training: {strategy: ddp}\n",
            gpu="H200-141GB:8",
            boot_disk=_DISK,
            capacity='{reservation: "projects/p/zones/us-central1-a/reservations/r"}',
        ),
    ),
)
