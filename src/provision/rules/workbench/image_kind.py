"""A Workbench instance cannot start from this image.

## What it does

Finds images that are not Workbench images: container images, the host image for containers, and
Deep Learning VM images.

## Why

Workbench requires its own agent and JupyterLab in the image. Containers are selected by repository
and tag, and run on a host that the service chooses.

## How to fix

Use an image from a Workbench family.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import newest_image_family

_KINDS = {
    "container": "a container image",
    "container-host": "the host image for containers",
    "dlvm": "a Deep Learning VM image",
}


def _check(context: LintContext) -> Findings:
    for target, _ in context.targets_of(WorkbenchTarget):
        image = target.image
        if image is None or image.kind not in _KINDS:
            continue
        severity = None
        why = "Workbench cannot create an instance from this image."
        if image.kind == "dlvm":
            severity = Severity.WARNING
            why = "Without the Workbench agent, the instance never becomes active."
        yield RULE.diagnostic(
            f"{image.family} is {_KINDS[image.kind]}, not an image for Workbench instances",
            target.route_to("image"),
            severity=severity,
            evidence=image.evidence,
            why=why,
            help=f"use an image from the {newest_image_family(context.facts)} family",
        )


RULE = Rule(
    id="IMG004",
    name="image-kind",
    severity=Severity.ERROR,
    sources=(
        "docs.cloud.google.com, Workbench instances, image versioning",
        "notebooks.v2 discovery document, VmImage and ContainerImage",
    ),
    check=_check,
    bad=examples(
        example_spec(image="«workbench-container-2606»"),
        example_spec(image="«common-cu129-ubuntu-2404-nvidia-580»"),
    ),
    good=examples(
        example_spec(image="workbench-instances-2603-20261004-2157-rc0"),
        example_spec(image="our-own-image-7"),
    ),
)
