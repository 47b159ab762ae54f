"""The image has no driver that works with this card.

## What it does

Compares the card with what is known of the image's driver: images of workbench-instances-2603 had none for cards before Turing (V100, P4) until October 2026.

## Why

The machine starts and nvidia-smi fails; torch finds no GPU.

## How to fix

Take an image of the day that is named, or a newer one.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.places import family_and_day
from provision.facts.versions import ordered
from provision.rules.instances import instances, sample
from provision.rules.rule import Case, Example, Rule, seen


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each image that is too old for its card."""
    for instance in instances(case):
        card, (family, day) = instance.site.card, family_and_day(instance.target.image or "")
        if card is None or not day:
            continue
        for change in case.facts.image_changes:
            if change.family != family or not change.cc_below or day >= change.since or ordered(card.cc) >= ordered(change.cc_below):
                continue
            yield RULE.found(
                f"{instance.target.image} has no working driver for {card.name}; images from {change.since} on have one",
                instance.route("image"),
                severity=change.evidence.at_most(Severity.ERROR),
                why=f"{card.name} is of compute capability {card.cc}; before that day nothing below {change.cc_below} had a driver.",
                way_out=f"take an image of {family} from {change.since} or later",
                related=(seen(instance.site.device.gpu_route, "GPU asked for here"),),
            )


RULE = Rule(
    id="IMG006",
    name="image-driver-for-card",
    severity=Severity.ERROR,
    summary="The image has no driver that works with this card.",
    sources=("release notes of Workbench images, 2026-10-05",),
    page=__doc__,
    check=check,
    bad=(
        Example(
            sample("gpu: V100\n", machine_type="n1-standard-8", image="workbench-instances-2603-20260928-2130-rc0"),
            "workbench-instances-2603-20260928-2130-rc0",
        ),
        Example(
            sample("gpu: P4\n", machine_type="n1-standard-8", image="workbench-instances-2603-20261003-2130-rc0"), "workbench-instances-2603-20261003-2130-rc0"
        ),
    ),
    good=(
        Example(sample("gpu: V100\n", machine_type="n1-standard-8", image="workbench-instances-2603-20261004-2157-rc0")),
        Example(sample("gpu: T4\n", machine_type="n1-standard-8", image="workbench-instances-2603-20260628-2130-rc0")),
    ),
)
