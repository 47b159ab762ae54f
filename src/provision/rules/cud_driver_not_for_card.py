"""A driver that does not know the card: too new for it, or too old.

## What it does

Compares the card with the driver that a place brings, and with `requires.driver`. NVIDIA drops old generations from new driver branches, and a new card needs
the branch it came with.

## Why

Branch 580 is the last for Maxwell, Pascal and Volta (GTX 9xx and 10xx, P100, V100), 470 for Kepler (K80): a newer driver "will ignore this GPU", and
nvidia-smi finds none. Blackwell cards (B200, RTX 50xx) are known from branch 570 on.

## How to fix

Ask for a driver of the branches that know the card.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Applicability, Diagnostic, Fix, Place, Replace, Severity
from provision.facts import Card
from provision.facts.places import family_and_day
from provision.facts.versions import least, ordered
from provision.rules.instances import PLACE
from provision.rules.lines import scalar
from provision.rules.required import Branches, Need, branches, need
from provision.rules.rule import Case, Example, Rule, seen
from provision.sites import Site

WHY = "Such a driver ignores the card, and nvidia-smi finds no GPU."


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each driver that a card does not work with."""
    for site in case.sites:
        if site.card is None:
            continue
        known = branches(case, site.card)
        if site.driver is not None:
            yield from _brought(case, site, site.card, known)
            yield from _too_early(case, site, site.card)
        asked = need(case, site, "driver")
        if asked is not None:
            yield from _asked(case, site, site.card, known, asked)


def _brought(case: Case, site: Site, card: Card, known: Branches) -> Iterator[Diagnostic]:
    driver = site.driver
    if driver is None:
        return
    branch = ordered(driver.value.split(".")[0])
    if (known.first and branch < ordered(known.first)) or (known.last and branch > ordered(known.last)):
        yield RULE.found(
            f"the driver of {driver.by} is {driver.value}, and there are drivers for {card.name} ({card.arch}) {known}",
            driver.route,
            severity=driver.evidence.at_most(_severity(case, card)),
            why=WHY,
            way_out=f"take an image with a driver {known}, or another card",
            related=(seen(site.device.gpu_route, "card asked for here"),),
        )


def _too_early(case: Case, site: Site, card: Card) -> Iterator[Diagnostic]:
    """Look for an image of a day before its family had a driver for such old cards."""
    family, day = family_and_day(getattr(site.target, "image", None) or "")
    for change in case.facts.image_changes:
        if change.family == family and day and change.cc_below and day < change.since and ordered(card.cc) < ordered(change.cc_below):
            yield RULE.found(
                f"images of {family} have a driver that works for {card.name} ({card.cc}) since {change.since}, and this one is of {day}",
                (*site.route, "image"),
                severity=change.evidence.at_most(_severity(case, card)),
                why="Before that day the driver there knew no card older than Turing.",
                way_out=f"take an image of {change.since} or later, or another card",
                related=(seen(site.device.gpu_route, "card asked for here"),),
            )


def _asked(case: Case, site: Site, card: Card, known: Branches, asked: Need) -> Iterator[Diagnostic]:
    specifiers = asked.specifiers
    if specifiers is None or not (known.first or known.last) or known.admit(specifiers):
        return
    low = least(specifiers)
    right = f">={known.first}" if known.first and (low is None or ordered(low) < ordered(known.first)) else f"<{known.below}"
    yield RULE.found(
        f"requires.driver: {asked.text} admits no driver that knows {card.name} ({card.arch}): there are drivers for it {known}",
        asked.route,
        severity=_severity(case, card),
        why=WHY,
        way_out=f'write driver: "{right}", or take another card',
        related=(seen(site.device.gpu_route, "card asked for here"),),
        fix=Fix(f'write driver: "{right}"', (Replace(Place(asked.route), scalar(right)),), Applicability.UNSAFE),
    )


def _severity(case: Case, card: Card) -> Severity:
    severity = card.evidence.at_most(Severity.ERROR)
    last, capability = case.facts.driver_ceiling(card), case.facts.capabilities.get(card.cc)
    for row in (last, capability):
        severity = row.evidence.at_most(severity) if row else severity
    return severity


RULE = Rule(
    id="CUD005",
    name="driver-not-for-card",
    severity=Severity.ERROR,
    summary="A driver that does not know the card: too new for it, or too old.",
    sources=(
        "NVIDIA, support answer 3142 on the last branch for Maxwell, Pascal and Volta",
        "NVIDIA R470 release notes",
        "NixOS/nixos-hardware#1880",
        "release notes of Workbench images",
        "ptxas --help of the CUDA toolkit wheels: the first toolkit that knows a capability, and its driver",
    ),
    page=__doc__,
    check=check,
    bad=(
        Example('gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\nrequires: {driver: ">=590"}\n', '">=590"'),
        Example('gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\nrequires: {driver: "==565.*"}\n', '"==565.*"'),
        Example('gpu: GTX-1080-Ti\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\nrequires: {driver: ">=581"}\n', '">=581"'),
        Example(
            'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\ntargets:\n'
            f"  wb: {{{PLACE}, image: workbench-instances-2603-20260809-2130-rc0}}\n",
            "workbench-instances-2603-20260809-2130-rc0",
        ),
    ),
    good=(
        Example('gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\nrequires: {driver: ">=580"}\n'),
        Example('gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\nrequires: {driver: ">=570"}\n'),
        Example('gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\nrequires: {driver: ">=590"}\n'),
        Example(
            'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\ntargets:\n'
            f"  wb: {{{PLACE}, image: workbench-instances-2603-20261004-2157-rc0}}\n"
        ),
    ),
)
