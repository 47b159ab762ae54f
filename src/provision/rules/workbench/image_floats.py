"""The image is not pinned.

## What it does

Finds Workbench targets that name a family of images instead of an image, or neither.

## Why

New images in a family are published about once a week, with different drivers and libraries. Two
instances from the same spec differ if they were created on different days.

## How to fix

Look up the newest image of the family with `gcloud compute images describe-from-family`, and set
`image` to its name.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.facts.schema_platforms import split_image_name
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import newest_image_family


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        name = fields.image
        image = target.image
        if name is None:
            problem = (
                f"target `{target.name}` does not set an image, so it gets the newest one on the "
                "day it is created"
            )
            family = newest_image_family(context.facts)
        elif (
            image is not None
            and image.pinnable
            and image.kind == "workbench"
            and not split_image_name(name)[1]
        ):
            problem = (
                f"{name} is an image family, so an instance gets the image that is newest when it "
                "is created"
            )
            family = name
        else:
            continue
        yield RULE.diagnostic(
            problem,
            target.route if name is None else target.route_to("image"),
            at=RoutePart.KEY if name is None else RoutePart.VALUE,
            why=(
                "New images in a family are published about once a week, with different drivers "
                "and libraries."
            ),
            help=(
                "set `image` to the name printed by `gcloud compute images describe-from-family "
                f'{family} --project=cloud-notebooks-managed --format="value(name)"`'
            ),
        )


RULE = Rule(
    id="IMG002",
    name="image-floats",
    severity=Severity.WARNING,
    sources=("docs.cloud.google.com, Workbench instances, image versioning",),
    check=_check,
    bad=examples(
        example_spec(image="«workbench-instances-2603»"),
        Example(example_spec(image=None), "wb"),
    ),
    good=examples(
        example_spec(image="workbench-instances-2603-20260809-2130-rc0"),
        'gpu: L4\npython: "3.12"\npackages: [torch]\n',
    ),
)
