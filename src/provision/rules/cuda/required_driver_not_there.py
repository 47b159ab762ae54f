"""A target does not have the driver that `requires.driver` requires.

## What it does

If the driver is known (from an image's name, or Colab's machines), compares it with
`requires.driver`.

## Why

The driver of an image or of Colab cannot be selected separately: the verification on the device
would fail.

## How to fix

Use a different image, or require only the driver that the packages need. `requires` under a target
applies only to that target.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import has_version_in_range
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.machine_requirements import driver_branches, find_version_requirement
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_at


def _check(context: LintContext) -> Findings:
    for target in context.targets:
        requirement = find_version_requirement(context, target, "driver")
        driver = target.driver
        if requirement is None or driver is None:
            continue
        specifiers = requirement.specifiers
        if target.card is not None and not driver_branches(context, target.card).admits(specifiers):
            continue
        branch, _, minor = driver.value.partition(".")
        # A branch alone means all of its drivers.
        below = f"{driver.value}.0.1" if minor else str(int(branch) + 1)
        if has_version_in_range(specifiers, driver.value, below):
            continue
        help_text = (
            f"relax the requirement for this target, for example `requires: {{driver: "
            f'">={branch}"}}`'
        )
        if target.image:
            help_text = "use an image with a matching driver, or relax the requirement"
        yield RULE.diagnostic(
            f"driver {driver.value} on {driver.provider} does not satisfy "
            f"`requires.driver: {requirement.text}`",
            requirement.route,
            evidence=driver.evidence,
            why=(
                "The image contains the driver, which cannot be changed separately, so "
                "verification on the device would fail."
            ),
            help=help_text,
            related=related_at(driver.route, f"has driver {driver.value}"),
        )


RULE = Rule(
    id="CUD006",
    name="required-driver-not-there",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/backend-info 66982a15",
        "docs.cloud.google.com, Deep Learning VM images and Workbench image versioning",
    ),
    check=_check,
    bad=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {driver: «">=590"»}\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        example(
            'gpu: T4\ncuda: "12.8"\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n'
            f"  wb: {{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2204-nvidia-570, "
            f'requires: {{driver: «">=575"»}}}}\n',
            other_ids=("IMG003", "IMG004"),
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {driver: ">=580"}\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {driver: ">=590"}\n',
    ),
)
