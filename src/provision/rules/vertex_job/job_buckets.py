"""One bucket is declared for several regions.

## What it does

Finds a `bucket` without a region if `regions` has several of them.

## Why

A job can only use a bucket in a single region, and should use one in its own: its machines read the
programs and write their reports there. With one bucket, every other region reads from far away, and
traffic between regions costs money.

## How to fix

Write `bucket` as a mapping from regions to folders.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for target, job in context.targets_of(VertexJobTarget):
        if isinstance(job.bucket, str) and len(set(job.regions)) > 1:
            yield RULE.diagnostic(
                f"one bucket is declared for {len(set(job.regions))} regions",
                target.route_to("bucket"),
                why="A bucket is in a single region, and a job should use one in its own region.",
                help=f"write `bucket: {{{job.regions[0]}: {job.bucket}, "
                f"{job.regions[1]}: gs://...}}`",
                related=related_at(target.route_to("regions"), "regions set here"),
            )


RULE = Rule(
    id="GCP032",
    name="job-buckets",
    severity=Severity.ERROR,
    sources=("Vertex AI documentation, Use Cloud Storage as a mounted file system",),
    check=_check,
    bad=examples(
        example_job("", regions="[us-central1, europe-west4]", bucket='«"gs://my-bucket/x"»'),
    ),
    good=examples(
        example_job(""),
        example_job(
            "",
            regions="[us-central1, europe-west4]",
            bucket='{us-central1: "gs://my-us/x", europe-west4: "gs://my-eu/x"}',
        ),
    ),
)
