"""Nobody published which driver an image carries, and the torch build may need a newer one.

## What it does

For images without a published driver, compares the floor of every possible torch build with what
the image must have at least: the driver of the CUDA version that it carries, or the oldest one
known of its family.

## Why

The facts do not show whether torch finds the GPU there.

## How to fix

Read the driver on the device, with `nvidia-smi --query-gpu=driver_version --format=csv`, or take an
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
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.rules.torch_builds import BuildOption, BuildQuery, build_queries, possible_builds

COMMAND = "nvidia-smi --query-gpu=driver_version --format=csv"


def _check(context: LintContext) -> Findings:
    for query in build_queries(context):
        image = query.target.image
        option = None
        if image is not None and query.target.driver is None:
            option = _newest_doubtful_build(context, query, image)
        if option is None or image is None:
            continue
        floor = context.facts.driver_floor(option.cuda)
        other = describe_image_with_driver(context, query.target, floor or "")
        yield RULE.diagnostic(
            f"torch {option.release.release} for CUDA {option.cuda} needs driver {floor}, "
            f"and the driver of image {image.family} was not published",
            (*query.target.route, "image"),
            why="If it is older, torch says that the NVIDIA driver on your system is too old, "
            "and runs on the CPU.",
            help=f"read it there with `{COMMAND}`" + (f", or {other}" if other else ""),
            related=related_at(query.cuda_route, "the CUDA version is decided here"),
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
        carried = toolkit.floor_linux if is_container else toolkit.driver_first
        if carried:
            drivers.append(carried)
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
    bad=(
        Example(
            'gpu: T4\ncuda: "13.0"\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n '
            f" workbench: {{{EXAMPLE_TARGET}, image: pytorch-2-4}}\n",
            "pytorch-2-4",
            other_ids=("IMG003", "IMG004"),
        ),
        Example(
            'gpu: T4\npython: "3.10"\npackages: [torch]\ntargets:\n  workbench: '
            f"{{{EXAMPLE_TARGET}, image: common-cu124-debian-11-py310}}\n",
            "common-cu124-debian-11-py310",
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
