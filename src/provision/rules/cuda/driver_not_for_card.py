"""A driver that does not know the card: too new for it, or too old.

## What it does

Compares the card with the driver that a place brings, and with `requires.driver`. NVIDIA drops old
generations from new driver branches, and a new card needs the branch it came with.

## Why

Branch 580 is the last for Maxwell, Pascal and Volta (GTX 9xx and 10xx, P100, V100), 470 for Kepler
(K80): a newer driver "will ignore this GPU", and nvidia-smi finds none. Blackwell cards (B200, RTX
50xx) are known from branch 570 on.

## How to fix

Ask for a driver of the branches that know the card.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.facts.schema_platforms import split_image_name
from provision.facts.versions import lower_bound, require_version
from provision.kinds.base import TargetFacts
from provision.rules.edits import replace_fix, yaml_scalar
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.machine_requirements import (
    driver_branches,
    find_machine_requirement,
)
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at

WHY = "Such a driver ignores the card, and nvidia-smi finds no GPU."


def _check(context: LintContext) -> Findings:
    for target in context.targets:
        if target.card is None:
            continue
        known = driver_branches(context, target.card)
        severity = _severity(context, target.card)
        related = related_at(target.gpu_settings.gpu_route, "card asked for here")
        driver = target.driver
        if driver and not known.includes(driver.value.split(".")[0]):
            yield RULE.diagnostic(
                f"the driver of {driver.provider} is {driver.value}, and there are drivers for "
                f"{target.card.name} ({target.card.arch}) {known}",
                driver.route,
                severity=severity,
                evidence=driver.evidence,
                why=WHY,
                help=f"take an image with a driver {known}, or another card",
                related=related,
            )
        if driver:
            yield from _early_image_findings(context, target, target.card)
        requirement = find_machine_requirement(context, target, "driver")
        specifiers = requirement.specifiers if requirement else None
        if requirement is None or specifiers is None or not (known.first or known.last):
            continue
        if known.admits(specifiers):
            continue
        low = lower_bound(specifiers)
        right = f"<{known.first_unsupported}"
        if known.first and (low is None or require_version(low) < require_version(known.first)):
            right = f">={known.first}"
        fix = replace_fix(f'write driver: "{right}"', requirement.route, yaml_scalar(right))
        yield RULE.diagnostic(
            f"requires.driver: {requirement.text} admits no driver that knows {target.card.name} "
            f"({target.card.arch}): there are drivers for it {known}",
            requirement.route,
            severity=severity,
            why=WHY,
            help=f"{fix.title}, or take another card",
            related=related,
            fix=fix,
        )


def _severity(context: LintContext, card: Card) -> Severity:
    severity = card.evidence.cap_severity(Severity.ERROR)
    for row in (context.facts.last_driver_branch(card), context.facts.capabilities.get(card.cc)):
        severity = row.evidence.cap_severity(severity) if row else severity
    return severity


def _early_image_findings(context: LintContext, target: TargetFacts, card: Card) -> Findings:
    """Look for an image of a day before its family had a driver for such old cards."""
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
                f"images of {family} have a driver that works for {card.name} ({card.cc}) "
                f"since {change.since}, and this one is of {day}",
                (*target.route, "image"),
                severity=_severity(context, card),
                evidence=change.evidence,
                why="Before that day the driver there knew no card older than Turing.",
                help=f"take an image of {change.since} or later, or another card",
                related=related_at(target.gpu_settings.gpu_route, "card asked for here"),
            )


RULE = Rule(
    id="CUD005",
    name="driver-not-for-card",
    severity=Severity.ERROR,
    sources=(
        "NVIDIA, support answer 3142 on the last branch for Maxwell, Pascal and Volta",
        "NVIDIA R470 release notes",
        "NixOS/nixos-hardware#1880",
        "release notes of Workbench images",
        (
            "ptxas --help of the CUDA toolkit wheels: the first toolkit that knows a "
            "capability, and its driver"
        ),
    ),
    check=_check,
    bad=(
        Example(
            'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\nrequires: '
            '{driver: ">=590"}\n',
            '">=590"',
        ),
        Example(
            'gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\nrequires: '
            '{driver: "==565.*"}\n',
            '"==565.*"',
        ),
        Example(
            'gpu: GTX-1080-Ti\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\nrequires: '
            '{driver: ">=581"}\n',
            '">=581"',
        ),
        Example(
            'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\ntargets:\n'
            f"  wb: {{{EXAMPLE_TARGET}, image: workbench-instances-2603-20260809-2130-rc0}}\n",
            "workbench-instances-2603-20260809-2130-rc0",
        ),
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\nrequires: '
        '{driver: ">=580"}\n',
        'gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\nrequires: '
        '{driver: ">=570"}\n',
        'gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\nrequires: {driver: ">=590"}\n',
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\ntargets:\n'
        f"  wb: {{{EXAMPLE_TARGET}, image: workbench-instances-2603-20261004-2157-rc0}}\n",
    ),
)
