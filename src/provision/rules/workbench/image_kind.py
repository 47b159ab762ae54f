"""A Workbench instance does not start from this image.

## What it does

Finds images that are not Workbench images: container images, the host of containers, and Deep
Learning VM images.

## Why

Workbench needs its own agent and JupyterLab in the image. Containers are named by repository and
tag, and run on a host that the service chooses.

## How to fix

Take an image of a family of Workbench's.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import newest_image_family, workbench_instances

_KINDS = {
    "container": "a container image",
    "container-host": "the host of containers",
    "dlvm": "a Deep Learning VM image",
}


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        image = instance.facts.image
        if image is None or image.kind not in _KINDS:
            continue
        yield RULE.diagnostic(
            f"{image.family} is {_KINDS[image.kind]}, and instances start from images of Workbench",
            instance.route("image"),
            severity=Severity.WARNING
            if image.kind == "dlvm"
            else image.evidence.cap_severity(Severity.ERROR),
            why="Without Workbench's agent the instance never becomes active."
            if image.kind == "dlvm"
            else "It is no image of a virtual machine.",
            help=f"take an image of the family {newest_image_family(context.facts)}",
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
    bad=(
        Example(example_spec(image="workbench-container-2606"), "workbench-container-2606"),
        Example(
            example_spec(image="common-cu129-ubuntu-2404-nvidia-580"),
            "common-cu129-ubuntu-2404-nvidia-580",
        ),
    ),
    good=examples(
        example_spec(image="workbench-instances-2603-20261004-2157-rc0"),
        example_spec(image="our-own-image-7"),
    ),
)
