"""The driver of an image is not published, and the torch build may require a newer one.

## What it does

For images without a published driver, compares the minimum driver of every possible torch build
with the oldest driver that the image can have: that of its CUDA version, or the oldest known driver
of its family.

## Why

The facts do not show whether torch finds the GPU.

## How to fix

Check the driver on the device with `nvidia-smi --query-gpu=driver_version --format=csv`, or use an
image whose driver is published.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.compatibility import is_driver_at_least
from provision.facts.schema_platforms import ImageFamily
from provision.facts.versions import require_version
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.machine_requirements import describe_image_with_driver
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)
from provision.rules.torch_builds import BuildOption, BuildQuery, build_queries, possible_builds


def _check(context: LintContext) -> Findings:
    for query in build_queries(context):
        image = query.target.image
        if image is None or query.target.driver is not None:
            continue
        option = _newest_doubtful_build(context, query, image)
        if option is None:
            continue
        floor = context.facts.driver_floor(option.cuda)
        other = describe_image_with_driver(context, query.target, floor or "")
        yield RULE.diagnostic(
            f"torch {option.release.release} for CUDA {option.cuda} requires driver {floor} or "
            f"newer, but the driver version of image {image.family} is not published",
            query.target.route_to("image"),
            why=(
                "With an older driver, torch reports `The NVIDIA driver on your system is too "
                "old` and runs on the CPU."
            ),
            help=(
                "check the driver on the instance with `nvidia-smi --query-gpu=driver_version "
                "--format=csv`"
            )
            + (f", or {other}" if other else ""),
            related=related_at(
                query.cuda_route,
                "GPU requested here"
                if query.target.gpu_settings.cuda == "auto"
                else "CUDA version set here",
            ),
        )


def _newest_doubtful_build(
    context: LintContext, query: BuildQuery, image: ImageFamily
) -> BuildOption | None:
    """Return the newest possible build if no build is sure to run on the image."""
    oldest = _oldest_driver(context, image)
    newest = None
    for option in possible_builds(context, query):
        if option.build is None or not context.facts.has_code_for(query.card, option.build):
            continue
        floor = context.facts.driver_floor(option.cuda)
        if floor is None or (oldest is not None and is_driver_at_least(oldest, floor)):
            return None
        newest = newest or option
    return newest


def _oldest_driver(context: LintContext, image: ImageFamily) -> str | None:
    """Return the oldest driver that images of a family may have.

    An image with a CUDA toolkit has the driver that came with it; a container requires no more of
    its host than the minimum of its CUDA.
    """
    known = [row.driver for row in context.facts.image_drivers if row.family == image.family]
    drivers = [min(known, key=require_version)] if known else []
    toolkit = context.facts.toolkits.get(image.cuda)
    if toolkit:
        is_container = image.kind == "container"
        included = toolkit.floor_linux if is_container else toolkit.driver_first
        if included:
            drivers.append(included)
    return max(drivers, key=require_version, default=None)


RULE = Rule(
    id="CUD008",
    name="driver-unknown",
    severity=Severity.UNKNOWN,
    sources=(
        "docs.cloud.google.com, Workbench image versioning and Deep Learning VM images",
        "NVIDIA, CUDA Compatibility, minor version compatibility",
    ),
    check=_check,
    bad=examples(
        example(
            'gpu: T4\ncuda: "13.0"\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n '
            f" workbench: {{{EXAMPLE_TARGET}, image: «pytorch-2-4»}}\n",
            other_ids=("IMG003", "IMG004"),
        ),
        example(
            'gpu: T4\npython: "3.10"\npackages: [torch]\ntargets:\n  workbench: '
            f"{{{EXAMPLE_TARGET}, image: «common-cu124-debian-11-py310»}}\n",
            ResolvedSet({"torch": "2.14.1"}, "3.10", "cu130"),
            ("IMG003", "IMG004"),
        ),
    ),
    good=examples(
        'gpu: T4\ncuda: "12.8"\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n '
        f" workbench: {{{EXAMPLE_TARGET}, image: pytorch-2-4}}\n",
        'gpu: T4\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n',
    ),
)
