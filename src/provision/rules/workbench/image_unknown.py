"""The image is not in the facts.

## What it does

Takes the family out of the image's name and looks it up in the table of images.

## Why

Its Python, C library, CUDA and driver are not known, so no rule can check what runs on it.

## How to fix

Take the nearest family, if that is meant. `gcloud compute images list` lists the names that exist.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_platforms import split_image_name
from provision.rules.examples import EXAMPLE_IMAGE, example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        name = instance.target.image
        if name is None or instance.facts.image is not None:
            continue
        meant = nearest_word(
            split_image_name(name)[0],
            (image.family for image in context.facts.images.values() if image.kind == "workbench"),
            3,
        )
        yield RULE.diagnostic(
            f"the facts know no image {name}"
            + (f"; the nearest family is {meant}" if meant else ""),
            instance.route("image"),
            why="Its Python, C library, CUDA and driver are not known, so no rule can tell "
            "what runs on it.",
            help="ask: gcloud compute images list --project=cloud-notebooks-managed "
            "--show-deprecated --filter=name~workbench-instances",
        )


RULE = Rule(
    id="IMG001",
    name="image-unknown",
    severity=Severity.UNKNOWN,
    sources=("docs.cloud.google.com, Workbench instances, image versioning",),
    check=_check,
    bad=(
        Example(
            example_spec(image="workbench-instance-2603-20261004-2157-rc0"),
            "workbench-instance-2603-20261004-2157-rc0",
        ),
        Example(example_spec(image="our-own-image-7"), "our-own-image-7"),
    ),
    good=examples(
        example_spec(image=EXAMPLE_IMAGE), example_spec(image="workbench-instances-v20260713")
    ),
)
