"""The region of a Colab Enterprise target is unknown.

## What it does

Looks up `region` in the table of regions that have a Vertex AI endpoint.

## Why

A runtime template belongs to one region, and each region has its own endpoint, so no request can be
sent for an unknown region.

## How to fix

Use a region that the finding names, near your data.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import ColabEnterpriseTarget
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.text import json_quote
from provision.spelling import nearest_words


def _check(context: LintContext) -> Findings:
    regions = context.facts.conditions["enterprise regions"]
    known = regions.value.split()
    for target, fields in context.targets_of(ColabEnterpriseTarget):
        if fields.region in known:
            continue
        near = nearest_words(fields.region.rpartition("-")[0] or fields.region, known, most=1)
        near = near or nearest_words(fields.region, known, most=1)
        yield RULE.diagnostic(
            f"{json_quote(fields.region)} is not a Vertex AI region (as of "
            f"{regions.evidence.as_of})",
            target.route_to("region"),
            evidence=regions.evidence,
            why=(
                "Each region has its own endpoint, so no request can be sent for an unknown region."
            ),
            help=f"use {near[0] if near else 'a region such as us-central1'}",
        )


_SPEC = (
    'gpu: none\npython: "3.12"\npackages: []\n'
    "targets: {t: {kind: colab-enterprise, project: my-project, region: REGION}}\n"
)

RULE = Rule(
    id="GCP025",
    name="enterprise-region-unknown",
    severity=Severity.ERROR,
    sources=("aiplatform v1 discovery document, endpoints",),
    check=_check,
    bad=examples(
        _SPEC.replace("REGION", "«us-central1-a»"),
        _SPEC.replace("REGION", "«moon-east1»"),
    ),
    good=examples(_SPEC.replace("REGION", "europe-west4")),
)
