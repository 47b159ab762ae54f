"""The image is from a legacy family, or out of support.

## What it does

Looks up the family of the image: whether it is a legacy family, and whether its support or
availability ended before the date of the table. Today's date does not matter, so that an unchanged
spec gets the same findings tomorrow.

## Why

The family that most samples name has an old system, Python and CUDA. An image out of support gets
no security updates, and an instance cannot start from an unavailable image.

## How to fix

Use an image from the newest family.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_platforms import ImageFamily
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import newest_image_family


def _check(context: LintContext) -> Findings:
    for target, _ in context.targets_of(WorkbenchTarget):
        image = target.image
        if image is None or image.kind == "container":
            continue
        severity = Severity.WARNING
        content = [f"Python {image.python}"] if image.python else []
        content += [f"CUDA {image.cuda}"] if image.cuda else []
        shown = f"{image.os} ({', '.join(content)})" if image.os else " and ".join(content)
        why = f"Its images come with {shown}."
        if _is_past(image.end_of_availability, image):
            problem = f"has been unavailable since {image.end_of_availability}"
            severity = Severity.ERROR
            why = "An instance cannot start from an unavailable image."
        elif _is_past(image.end_of_support, image):
            problem = f"has been out of support since {image.end_of_support}"
        elif image.legacy:
            problem = f"is a legacy family, supported until {image.end_of_support}"
        else:
            continue
        yield RULE.diagnostic(
            f"{image.family} {problem}",
            target.route_to("image"),
            severity=severity,
            evidence=image.evidence,
            why=why,
            help=f"use an image from the {newest_image_family(context.facts)} family",
        )


def _is_past(end: str, image: ImageFamily) -> bool:
    """Return whether a day, or the last day of a month, is before the day of the row."""
    return bool(end) and end < image.evidence.as_of[: len(end)]


RULE = Rule(
    id="IMG003",
    name="image-legacy",
    severity=Severity.ERROR,
    sources=("docs.cloud.google.com, Workbench instances, image versioning and support policy",),
    check=_check,
    bad=examples(
        example_spec(image="«workbench-instances-20260713-2130-rc0»"),
        example_spec(image="«workbench-instances-v20260713»"),
    ),
    good=examples(
        example_spec(image="workbench-instances-2603-20261004-2157-rc0"),
        example_spec(image="our-own-image-7"),
    ),
)
