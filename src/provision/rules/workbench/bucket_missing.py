"""An instance has no bucket.

## What it does

Finds Workbench targets without `bucket`.

## Why

The program that sets the instance up, its document and its report travel through a bucket of Cloud
Storage: nothing is pasted into metadata, and no port is open. `plan` refuses a target without one.

## How to fix

Make a bucket in the region of the zones (`gcloud storage buckets create gs://NAME
--location=REGION`) and write `bucket: gs://NAME/FOLDER`.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.facts.machines import ZONE_PATTERN, region_of
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        if instance.target.bucket is not None:
            continue
        region = next(
            (region_of(zone) for zone in instance.target.zones if ZONE_PATTERN.fullmatch(zone)),
            "REGION",
        )
        yield RULE.diagnostic(
            f"{instance.facts.name} has no bucket",
            instance.facts.route,
            at=RoutePart.KEY,
            why="The program and the report travel through a bucket; plan refuses a target "
            "without one.",
            help=f"make one (gcloud storage buckets create gs://NAME --location={region}) and "
            "write bucket: gs://NAME/provision",
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
