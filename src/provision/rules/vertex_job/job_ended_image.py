"""The image of a job is a prebuilt training image that is no longer available.

## What it does

Looks up images in the repositories `vertex-ai/training` of Artifact Registry in the table of those
whose end of availability has passed.

## Why

Google removes these images: the service may refuse the job, or its machines cannot pull the image.

## How to fix

Use the official Python image, in which the machines install the locked packages, or build your own.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples

_PREBUILT = re.compile(r"(?:us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/([^:@]+).*")


def _check(context: LintContext) -> Findings:
    ended = context.facts.job_properties["ended training images"]
    names = frozenset(ended.value.split())
    for target, job in context.targets_of(VertexJobTarget):
        match = _PREBUILT.fullmatch(job.image)
        if match is not None and match[1] in names:
            yield RULE.diagnostic(
                f"the training image {match[1]} is no longer available (as of "
                f"{ended.evidence.as_of})",
                target.route_to("image"),
                evidence=ended.evidence,
                why="After its end of availability, the service may refuse jobs with it, and it "
                "can no longer be downloaded.",
                help="use docker.io/library/python by its digest, in which the locked packages are "
                "installed, or an image of your own",
            )


_DIGEST = f"@sha256:{64 * '1'}"
_PATH = "docker.pkg.dev/vertex-ai/training"

RULE = Rule(
    id="IMG036",
    name="job-ended-image",
    severity=Severity.ERROR,
    sources=("Vertex AI documentation, Prebuilt containers for serverless training",),
    check=_check,
    bad=examples(
        example_job("", image=f'«"us-{_PATH}/pytorch-gpu.2-4.py310{_DIGEST}"»'),
        example_job("", gpu="none", image=f'«"europe-{_PATH}/tf-cpu.2-17.py310{_DIGEST}"»'),
    ),
    good=examples(
        example_job("", image=f'"us-{_PATH}/ray-gpu.2-47.py311{_DIGEST}"'),
        example_job("", image=f'"us-docker.pkg.dev/my-project/training/pytorch-gpu.2-4{_DIGEST}"'),
    ),
)
