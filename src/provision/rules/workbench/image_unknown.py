"""The image is not in the facts.

## What it does

Reads the family from the image's name and looks it up in the table of images.

## Why

Its Python, C library, CUDA and driver are unknown, so the rules cannot check what runs on it.

## How to fix

Use the nearest family, if that is what you meant. `gcloud compute images list` lists the existing
names.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_platforms import split_image_name
from provision.kinds import WorkbenchTarget
from provision.rules.examples import EXAMPLE_IMAGE, example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    images = context.facts.images.values()
    families = [image.family for image in images if image.kind == "workbench"]
    for target, fields in context.targets_of(WorkbenchTarget):
        name = fields.image
        if name is None or target.image is not None:
            continue
        meant = nearest_word(split_image_name(name)[0], families, 3)
        yield RULE.diagnostic(
            f"unknown image {name}" + (f"; the nearest family is {meant}" if meant else ""),
            target.route_to("image"),
            why=(
                "Its Python, C library, CUDA and driver are unknown, so the rules cannot check "
                "what runs on it."
            ),
            help=(
                "list the images with `gcloud compute images list "
                "--project=cloud-notebooks-managed --show-deprecated "
                "--filter=name~workbench-instances`"
            ),
        )


RULE = Rule(
    id="IMG001",
    name="image-unknown",
    severity=Severity.UNKNOWN,
    sources=("docs.cloud.google.com, Workbench instances, image versioning",),
    check=_check,
    bad=examples(
        example_spec(image="«workbench-instance-2603-20261004-2157-rc0»"),
        example_spec(image="«our-own-image-7»"),
    ),
    good=examples(
        example_spec(image=EXAMPLE_IMAGE), example_spec(image="workbench-instances-v20260713")
    ),
)
