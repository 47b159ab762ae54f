"""Secure Boot does not load this image's GPU driver.

## What it does

Compares `shielded.secure_boot` on a target with a GPU with the image: its driver is signed only in
images from a certain date on, or not at all.

## Why

Secure Boot loads only signed modules. The machine starts, but the driver is not loaded, and
nvidia-smi fails.

## How to fix

Use a newer image, or remove `secure_boot`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_platforms import split_image_name
from provision.kinds import WorkbenchTarget
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import newest_image_family


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        image = target.image
        if image is None or not fields.shielded.secure_boot or not target.gpu_settings.is_nvidia:
            continue
        since = image.secure_boot_with_gpu.replace("-", "")
        day = split_image_name(fields.image or "")[1]
        if since and (not day or day >= since):
            continue
        note = "no image in this family has a signed driver"
        help_text = f"use an image from {newest_image_family(context.facts)}"
        if since:
            note = f"only images dated {image.secure_boot_with_gpu} or later have signed drivers"
            help_text = f"use a newer image from {image.family}"
        route = target.route_to("shielded", "secure_boot")
        yield RULE.diagnostic(
            f"`secure_boot` is set, but the GPU driver in {fields.image} is not signed ({note})",
            route,
            evidence=image.evidence,
            why=(
                "Secure Boot loads only signed modules: the machine starts, but its GPU driver "
                "is not loaded."
            ),
            help=f"{help_text}, or remove `secure_boot`",
            related=related_at(target.route_to("image"), "image set here"),
            fix=set_field_fix(context, route, "false"),
        )


RULE = Rule(
    id="IMG005",
    name="secure-boot-with-gpu",
    severity=Severity.ERROR,
    sources=(
        (
            "docs.cloud.google.com, Workbench instances, image versioning and release notes of "
            "2026-07-13"
        ),
    ),
    check=_check,
    bad=examples(
        example_spec(
            image="workbench-instances-2603-20260628-2130-rc0", shielded="{secure_boot: «true»}"
        ),
        example_spec(
            image="workbench-instances-2603-20260712-2130-rc0", shielded="{secure_boot: «true»}"
        ),
    ),
    good=examples(
        example_spec(
            image="workbench-instances-2603-20260713-2130-rc0", shielded="{secure_boot: true}"
        ),
        example_spec(
            "gpu: none\n",
            machine_type="n2-standard-8",
            image="workbench-instances-2603-20260628-2130-rc0",
            shielded="{secure_boot: true}",
        ),
        example_spec(image="workbench-instances-2603-20260628-2130-rc0", shielded="{vtpm: true}"),
    ),
)
