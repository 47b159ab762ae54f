"""The image of a job is not named by its digest.

## What it does

Finds an `image` without `@sha256:` and the digest.

## Why

A tag can point at a different image tomorrow: a verification would no longer say anything about
the next job, and machines of one job could even have different images.

## How to fix

Use the name with its digest: `docker buildx imagetools inspect NAME:TAG` prints the digest.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.text import json_quote

_BY_DIGEST = re.compile(r"[a-z0-9][^@\s]*@sha256:[0-9a-f]{64}")


def _check(context: LintContext) -> Findings:
    for target, job in context.targets_of(VertexJobTarget):
        if not _BY_DIGEST.fullmatch(job.image):
            name = job.image.partition("@")[0]
            yield RULE.diagnostic(
                f"the image {json_quote(job.image)} is not pinned to a digest",
                target.route_to("image"),
                why="A tag can point at a different image later.",
                help="write NAME@sha256:DIGEST; `docker buildx imagetools inspect "
                f"{name if re.fullmatch(r'[A-Za-z0-9._/:-]+', name) else 'NAME:TAG'}` prints it",
            )


RULE = Rule(
    id="IMG034",
    name="job-image-tag",
    severity=Severity.ERROR,
    sources=("OCI distribution specification, pulling manifests by digest",),
    check=_check,
    bad=examples(
        example_job("", image='«"docker.io/library/python:3.12"»'),
        example_job("", image="«python»"),
    ),
    good=examples(example_job("")),
)
