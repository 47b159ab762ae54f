"""A Workbench target has no bucket.

## What it does

Finds Workbench targets without `bucket`.

## Why

The program that sets up the instance, its configuration and its report are transferred through a
Cloud Storage bucket: nothing is pasted into metadata, and no port is open. `plan` refuses a target
without one.

## How to fix

Create a bucket in the region of the zones (`gcloud storage buckets create gs://NAME
--location=REGION`) and set `bucket: gs://NAME/FOLDER`.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.facts.machines import ZONE_PATTERN, region_of
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        if fields.bucket is not None:
            continue
        regions = (region_of(zone) for zone in fields.zones if ZONE_PATTERN.fullmatch(zone))
        yield RULE.diagnostic(
            f"target `{target.name}` has no bucket",
            target.route,
            at=RoutePart.KEY,
            why=(
                "The setup program and the report are transferred through a bucket, so `plan` "
                "refuses a target without one."
            ),
            help=(
                "create a bucket with `gcloud storage buckets create gs://NAME "
                f"--location={next(regions, 'REGION')}`, and set `bucket: gs://NAME/provision`"
            ),
        )


RULE = Rule(
    id="GCP021",
    name="bucket-missing",
    severity=Severity.ERROR,
    sources=(
        (
            "docs.cloud.google.com, Workbench instances, manage metadata (post-startup-script "
            "is a Cloud Storage path)"
        ),
    ),
    check=_check,
    bad=(Example(example_spec(bucket=None), "wb"),),
    good=examples(example_spec(bucket="gs://my-bucket/provision")),
)
