"""A region does not offer the requested GPU for training, or is unknown.

## What it does

Looks up each of `regions` in the table of regions that have a Vertex AI endpoint, and the GPU in
the table of GPUs that training has in each region. Some regions have a GPU for inference only.

## Why

The service refuses the job in this region, whatever the quota.

## How to fix

Use the regions that the finding names, or a different GPU.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.job_machines import find_training_regions, list_training_cards
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list, json_quote
from provision.spelling import nearest_words


def _check(context: LintContext) -> Findings:
    facts = context.facts
    endpoints = facts.conditions["enterprise regions"]
    known = endpoints.value.split()
    for target, job in context.targets_of(VertexJobTarget):
        card = target.card
        for number, region in enumerate(job.regions):
            route = target.route_to("regions", number)
            if region not in known:
                near = nearest_words(region.rpartition("-")[0] or region, known, most=1)
                near = near or nearest_words(region, known, most=1)
                yield RULE.diagnostic(
                    f"{json_quote(region)} is not a Vertex AI region (as of "
                    f"{endpoints.evidence.as_of})",
                    route,
                    evidence=endpoints.evidence,
                    why="Each region has its own endpoint, so no request can be sent for an "
                    "unknown region.",
                    help=f"use {near[0] if near else 'a region such as us-central1'}",
                )
            elif card is None or not card.vertex:
                continue  # the kind itself refuses it
            elif card.name not in list_training_cards(region, facts):
                regions = find_training_regions(card, facts)
                row = next(iter(facts.training_regions.values()))
                yield RULE.diagnostic(
                    f"{region} does not offer {target.gpu_settings.gpu.type} for training (as of "
                    f"{row.evidence.as_of})",
                    route,
                    evidence=row.evidence,
                    why="The service refuses the job in this region, whatever the quota.",
                    help=f"use {format_list(regions[:4])}"
                    if regions
                    else "use a different GPU; jobs cannot have this one",
                    related=related_at(target.gpu_settings.gpu_route, "GPU set here"),
                )


_BUCKETS = '{us-central1: "gs://my-us/x", us-west4: "gs://my-west/x"}'

RULE = Rule(
    id="GCP030",
    name="job-gpu-region",
    severity=Severity.ERROR,
    sources=(
        "Vertex AI documentation, Locations, Using accelerators",
        "aiplatform v1 discovery document, endpoints",
    ),
    check=_check,
    bad=examples(
        example_job("", regions="[«europe-west1»]"),
        example_job("", regions="[«us-centrall1»]"),
        example_job("", gpu="none", regions="[«us-central1-a»]"),
        example_job("", regions="[us-central1, «us-west4»]", bucket=_BUCKETS),
    ),
    good=examples(
        example_job("", regions="[europe-west4]"),
        example_job("", gpu="none", regions="[europe-west9]"),
    ),
)
