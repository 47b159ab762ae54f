"""`requires.driver` requires a driver that a target does not have.

## What it does

Where the driver is known (from an image's name, or Colab's machines), compares it with
`requires.driver`.

## Why

The driver of an image or of Colab cannot be chosen apart from it: the verification on the device
would fail.

## How to fix

Take another image, or require no more than what the packages need: `requires` under a target
applies to that target only.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import has_version_in_range
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.machine_requirements import driver_branches, find_machine_requirement
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for target in context.targets:
        requirement = find_machine_requirement(context, target, "driver")
        driver = target.driver
        specifiers = requirement.specifiers if requirement else None
        if requirement is None or driver is None or specifiers is None:
            continue
        if target.card is not None and not driver_branches(context, target.card).admits(specifiers):
            continue
        branch, _, minor = driver.value.partition(".")
        # A branch alone means all of its drivers.
        below = f"{driver.value}.0.1" if minor else str(int(branch) + 1)
        if has_version_in_range(specifiers, driver.value, below):
            continue
        yield RULE.diagnostic(
            f"requires.driver: {requirement.text} is asked for, and the driver of "
            f"{driver.provider} is {driver.value}",
            requirement.route,
            evidence=driver.evidence,
            why=f"The driver comes with {driver.provider} and cannot be chosen apart from it, "
            "so the check on the device would fail.",
            help="take an image that brings such a driver, or ask for less"
            if target.image
            else f'ask for less at this target, as in requires: {{driver: ">={branch}"}}',
            related=related_at(driver.route, f"driver {driver.value} comes from here"),
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
    bad=(
        Example(
            'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {driver: '
            '">=590"}\ntargets: {colab: {kind: colab, runtime: "2026.07"}}\n',
            '">=590"',
        ),
        Example(
            'gpu: T4\ncuda: "12.8"\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n'
            f"  wb: {{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2204-nvidia-570, "
            f'requires: {{driver: ">=575"}}}}\n',
            '">=575"',
            other_ids=("IMG003", "IMG004"),
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {driver: '
        '">=580"}\ntargets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {driver: ">=590"}\n',
    ),
)
