"""Secure Boot does not start this image's GPU driver.

## What it does

Compares `shielded.secure_boot` on a target with a GPU with what the image carries: the driver is
signed from a day on, or not at all.

## Why

Secure Boot loads signed modules only. The machine starts, the driver does not, and nvidia-smi
fails.

## How to fix

Take a newer image, or leave `secure_boot` out.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_platforms import split_image_name
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import newest_image_family, workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        image = instance.facts.image
        name = instance.target.image or ""
        if (
            image is None
            or not instance.target.shielded.secure_boot
            or not instance.facts.gpu_settings.is_nvidia
        ):
            continue
        since = image.secure_boot_with_gpu.replace("-", "")
        day = split_image_name(name)[1]
        if since and (not day or day >= since):
            continue
        signed = f"from {image.secure_boot_with_gpu} on" if since else "in no image of this family"
        yield RULE.diagnostic(
            f"secure_boot with a GPU: the driver is signed {signed}, and the image is {name}",
            instance.route("shielded", "secure_boot"),
            evidence=image.evidence,
            why="Secure Boot loads signed modules only: the machine starts, and its GPU driver "
            "does not.",
            help="take an image of "
            f"{image.family if since else newest_image_family(context.facts)} that is newer, "
            "or leave secure_boot out",
            related=related_at(instance.route("image"), "image asked for here"),
            fix=set_field_fix(context, instance.route("shielded", "secure_boot"), "false"),
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
    bad=(
        Example(
            example_spec(
                image="workbench-instances-2603-20260628-2130-rc0", shielded="{secure_boot: true}"
            ),
            "true",
        ),
        Example(
            example_spec(
                image="workbench-instances-2603-20260712-2130-rc0", shielded="{secure_boot: true}"
            ),
            "true",
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
