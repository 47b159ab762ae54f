"""The image is not pinned by its name.

## What it does

Finds Workbench targets that name a family of images in place of an image, and those that name
neither.

## Why

A family is published anew about weekly, with other drivers and libraries. Two instances of one spec
differ by the day they were made on.

## How to fix

Ask for the newest image of the family, and write its name: `gcloud compute images
describe-from-family`.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.facts.schema_platforms import split_image_name
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import newest_image_family, workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        name = instance.target.image
        image = instance.facts.image
        if name is None:
            problem = (
                f"{instance.facts.name} names no image, so it gets whatever is newest on the day"
            )
            family = newest_image_family(context.facts)
        elif (
            image is not None
            and image.pinnable
            and image.kind == "workbench"
            and not split_image_name(name)[1]
        ):
            problem = f"{name} is a family of images, and the newest of the day is taken"
            family = name
        else:
            continue
        yield RULE.diagnostic(
            problem,
            instance.facts.route if name is None else instance.route("image"),
            at=RoutePart.KEY if name is None else RoutePart.VALUE,
            why="A family is published anew about weekly, with other drivers and libraries.",
            help=f"write the name that this gives: {_family_command(family)}",
        )


def _family_command(family: str) -> str:
    return (
        f"gcloud compute images describe-from-family {family} "
        '--project=cloud-notebooks-managed --format="value(name)"'
    )


RULE = Rule(
    id="IMG002",
    name="image-floats",
    severity=Severity.WARNING,
    sources=("docs.cloud.google.com, Workbench instances, image versioning",),
    check=_check,
    bad=(
        Example(example_spec(image="workbench-instances-2603"), "workbench-instances-2603"),
        Example(example_spec(image=None), "wb"),
    ),
    good=examples(
        example_spec(image="workbench-instances-2603-20260809-2130-rc0"),
        'gpu: L4\npython: "3.12"\npackages: [torch]\n',
    ),
)
