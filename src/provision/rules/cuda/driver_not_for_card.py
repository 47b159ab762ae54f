"""The driver does not support the GPU: it is too new or too old.

## What it does

Compares the GPU with the driver of each target, and with `requires.driver`. NVIDIA drops old
generations from new driver branches, and a new GPU requires the branch it was released with.

## Why

Branch 580 is the last for Maxwell, Pascal and Volta (GTX 9xx and 10xx, P100, V100), 470 for Kepler
(K80): a newer driver "will ignore this GPU", and nvidia-smi finds none. Blackwell GPUs (B200, RTX
50xx) are supported since branch 570.

## How to fix

Require a driver from the branches that support the GPU.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.facts.schema_platforms import split_image_name
from provision.facts.versions import lower_bound, require_version
from provision.kinds.base import TargetFacts
from provision.rules.edits import replace_fix, yaml_scalar
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.machine_requirements import driver_branches, find_version_requirement
from provision.rules.rule import Findings, LintContext, Rule, examples, related_gpu

_WHY = "A driver that does not support the GPU ignores it, and nvidia-smi finds no GPU."


def _check(context: LintContext) -> Findings:
    for target in context.targets:
        if target.card is None:
            continue
        known = driver_branches(context, target.card)
        severity = _severity(context, target.card)
        needs = f"{target.card.name} ({target.card.arch}) requires driver {known}"
        driver = target.driver
        if driver and not known.includes(driver.value.split(".")[0]):
            yield RULE.diagnostic(
                f"{needs}, but {driver.provider} has driver {driver.value}",
                driver.route,
                severity=severity,
                evidence=driver.evidence,
                why=_WHY,
                help=f"use an image with driver {known}, or a different GPU",
                related=related_gpu(target),
            )
        if driver:
            yield from _early_image_findings(context, target, target.card)
        requirement = find_version_requirement(context, target, "driver")
        if requirement is None or not (known.first or known.last):
            continue
        if known.admits(requirement.specifiers):
            continue
        low = lower_bound(requirement.specifiers)
        right = f"<{known.first_unsupported}"
        if known.first and (low is None or require_version(low) < require_version(known.first)):
            right = f">={known.first}"
        fix = replace_fix(f'set `driver: "{right}"`', requirement.route, yaml_scalar(right))
        yield RULE.diagnostic(
            f"{needs}, which `requires.driver: {requirement.text}` excludes",
            requirement.route,
            severity=severity,
            why=_WHY,
            help=f"{fix.title}, or use a different GPU",
            related=related_gpu(target),
            fix=fix,
        )


def _severity(context: LintContext, card: Card) -> Severity:
    severity = card.evidence.cap_severity(Severity.ERROR)
    for row in (context.facts.last_driver_branch(card), context.facts.capabilities.get(card.cc)):
        severity = row.evidence.cap_severity(severity) if row else severity
    return severity


def _early_image_findings(context: LintContext, target: TargetFacts, card: Card) -> Findings:
    """Look for an image from before its family had a driver for such old cards."""
    family, day = split_image_name(getattr(target.target, "image", None) or "")
    for change in context.facts.image_changes:
        if (
            change.family == family
            and day
            and change.cc_below
            and day < change.since
            and require_version(card.cc) < require_version(change.cc_below)
        ):
            yield RULE.diagnostic(
                f"images from the {family} family have supported {card.name} (compute capability "
                f"{card.cc}) since {_to_date(change.since)}, but this image is from "
                f"{_to_date(day)}",
                target.route_to("image"),
                severity=_severity(context, card),
                evidence=change.evidence,
                why="Before that date, the driver did not support GPUs older than Turing.",
                help=f"use an image from {_to_date(change.since)} or later, or a different GPU",
                related=related_gpu(target),
            )


def _to_date(day: str) -> str:
    """Return the day of an image name (20261004) as a date (2026-10-04)."""
    return f"{day[:4]}-{day[4:6]}-{day[6:]}"


RULE = Rule(
    id="CUD005",
    name="driver-not-for-card",
    severity=Severity.ERROR,
    sources=(
        "NVIDIA, support answer 3142 on the last driver branch for Maxwell, Pascal and Volta",
        "NVIDIA R470 release notes",
        "NixOS/nixos-hardware#1880",
        "release notes of Workbench images",
        (
            "output of `ptxas --help` from the CUDA toolkit wheels, which shows the first toolkit "
            "that supports each compute capability"
        ),
    ),
    check=_check,
    bad=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: «">=590"»}\n',
        'gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\n'
        'requires: {driver: «"==565.*"»}\n',
        'gpu: GTX-1080-Ti\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n'
        'requires: {driver: «">=581"»}\n',
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\ntargets:\n'
        f"  wb: {{{EXAMPLE_TARGET}, image: «workbench-instances-2603-20260809-2130-rc0»}}\n",
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: ">=580"}\n',
        'gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\n'
        'requires: {driver: ">=570"}\n',
        'gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\nrequires: {driver: ">=590"}\n',
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\ntargets:\n'
        f"  wb: {{{EXAMPLE_TARGET}, image: workbench-instances-2603-20261004-2157-rc0}}\n",
    ),
)
