"""A job expects the locked packages in an image that does not contain them.

## What it does

Finds `environment: baked` with the official Python image of Docker Hub, and packages.

## Why

With `baked`, nothing is installed on the machines: the packages have to be in the image. The
official image contains only pip, setuptools and wheel: the job would start, cost money, and fail.

## How to fix

Build an image on top of it, from the lock, or remove `environment`.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.text import json_quote

_CONTENT = frozenset(("pip", "setuptools", "wheel"))
_OFFICIAL = re.compile(r"(docker\.io/)?(library/)?python[:@].*")


def _check(context: LintContext) -> Findings:
    missing = [package.key for package in context.spec.packages if package.key not in _CONTENT]
    if not missing:
        return
    for target, job in context.targets_of(VertexJobTarget):
        if job.environment == "baked" and _OFFICIAL.fullmatch(job.image):
            yield RULE.diagnostic(
                f"the image {json_quote(job.image.partition('@')[0])} does not contain "
                f"{missing[0]}",
                target.route_to("image"),
                why="With `environment: baked`, the packages have to be in the image: nothing is "
                "installed.",
                help="build an image from the lock (docs/how-to/vertex-job.md), or remove "
                "`environment`",
                related=related_at(target.route_to("environment"), "nothing is installed"),
            )


_OWN = f'"us-docker.pkg.dev/my-project/images/train@sha256:{64 * "1"}"'

RULE = Rule(
    id="IMG035",
    name="job-baked-image",
    severity=Severity.ERROR,
    sources=("https://github.com/docker-library/python (Dockerfile-linux.template)",),
    check=_check,
    bad=examples(
        example_job(
            "", environment="baked", image=f'«"docker.io/library/python@sha256:{64 * "1"}"»'
        ),
        example_job("", environment="baked", image=f'«"python:3.12@sha256:{64 * "1"}"»'),
    ),
    good=examples(
        example_job("", environment="baked", image=_OWN),
        example_job("", gpu="none", environment="baked"),
        example_job("", environment="install"),
    ),
)
