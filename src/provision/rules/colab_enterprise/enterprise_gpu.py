"""Colab Enterprise may not offer the requested GPU in this region.

## What it does

Compares the GPU with those that gcloud offers for a runtime template, and its region with the table
of GPUs per zone. A region without the GPU is an error, a GPU that gcloud does not offer a warning.

## Why

A template can be created with any GPU that the API knows. Only when somebody needs a runtime does
it turn out that none can be created from it.

## How to fix

Use a GPU that the finding names, or a region that has the GPU.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.lazy_tables import load_zones
from provision.kinds import ColabEnterpriseTarget
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_alternatives


def _check(context: LintContext) -> Findings:
    offered = context.facts.conditions["enterprise cards"]
    names = offered.value.split()
    for target, fields in context.targets_of(ColabEnterpriseTarget):
        card, route = target.card, target.gpu_settings.gpu_route
        if card is None or not card.workbench:
            continue
        if card.name not in names:
            yield RULE.diagnostic(
                f"Colab Enterprise is not known to offer {target.gpu_settings.gpu.type}",
                route,
                severity=Severity.WARNING,
                evidence=offered.evidence,
                why="gcloud does not list this GPU for runtime templates.",
                help=f"use {format_alternatives(names)}",
            )
            continue
        rows = [row for row in load_zones() if row.card == card.name]
        regions = sorted(row.region for row in rows)
        if rows and fields.region not in regions:
            yield RULE.diagnostic(
                f"{fields.region} does not offer {target.gpu_settings.gpu.type} (as of "
                f"{rows[0].evidence.as_of})",
                target.route_to("region"),
                evidence=rows[0].evidence,
                why="A runtime cannot be created there, regardless of the quota.",
                help=f"use a region such as {format_alternatives(regions[:3])}",
                related=related_at(route, "GPU set here"),
            )


_HEAD = 'cuda: "12.8"\npython: "3.12"\npackages: [torch]\n'
_TARGET = "targets: {t: {kind: colab-enterprise, project: my-project, region: %s}}\n"

RULE = Rule(
    id="GCP026",
    name="enterprise-gpu",
    severity=Severity.ERROR,
    sources=(
        "google-cloud-sdk, lib/surface/colab",
        "Compute Engine documentation, GPU regions and zones",
    ),
    check=_check,
    bad=examples(
        "gpu: «H100-80GB»\n" + _HEAD + _TARGET % "us-central1",
        "gpu: L4\n" + _HEAD + _TARGET % "«africa-south1»",
    ),
    good=examples(
        "gpu: L4\n" + _HEAD + _TARGET % "us-central1",
        'gpu: none\npython: "3.12"\npackages: []\n' + _TARGET % "africa-south1",
    ),
)
