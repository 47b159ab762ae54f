"""An instance has no bucket.

## What it does

Finds Workbench targets without `bucket`.

## Why

The program that sets the instance up, its document and its report travel through a bucket of Cloud Storage: nothing is pasted into metadata, and no port is
open. `plan` refuses a target without one.

## How to fix

Make a bucket in the region of the zones (`gcloud storage buckets create gs://NAME --location=REGION`) and write `bucket: gs://NAME/FOLDER`.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import At, Diagnostic, Severity
from provision.facts.machines import ZONE, region_of
from provision.rules.instances import instances, sample
from provision.rules.rule import Case, Example, Rule


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each instance without a bucket."""
    for instance in instances(case):
        if instance.target.bucket is not None:
            continue
        region = next((region_of(zone) for zone in instance.target.zones if ZONE.fullmatch(zone)), "REGION")
        yield RULE.found(
            f"{instance.site.name} has no bucket",
            instance.site.route,
            at=At.KEY,
            why="The program and the report travel through a bucket; plan refuses a target without one.",
            way_out=f"make one (gcloud storage buckets create gs://NAME --location={region}) and write bucket: gs://NAME/provision",
        )


RULE = Rule(
    id="GCP021",
    name="bucket-missing",
    severity=Severity.ERROR,
    summary="An instance has no bucket.",
    sources=("docs.cloud.google.com, Workbench instances, manage metadata (post-startup-script is a Cloud Storage path)",),
    page=__doc__,
    check=check,
    bad=(Example(sample(bucket=None), "wb"),),
    good=(Example(sample(bucket="gs://my-bucket/provision")),),
)
