"""The name of a zone is not valid.

## What it does

Checks the form of each zone: a region, a hyphen and a letter, as in us-central1-a.

## Why

An instance is created in a zone, never in a region. Google Cloud rejects any other name.

## How to fix

List zones in the region, in the order in which to try them.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.lazy_tables import load_zones
from provision.facts.machines import REGION_PATTERN, ZONE_PATTERN
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.text import format_alternatives, json_quote
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        card = target.card.name if target.card else ""
        for index, zone in enumerate(fields.zones):
            if ZONE_PATTERN.fullmatch(zone):
                continue
            near = format_alternatives(_zones_like(zone, card))
            problem = "a region, not a zone" if REGION_PATTERN.fullmatch(zone) else "not a zone"
            yield RULE.diagnostic(
                f"{json_quote(zone)} is {problem}",
                target.route_to("zones", index),
                why="A zone name consists of a region, a hyphen and a letter.",
                help=f"use {near or 'a zone such as us-central1-a'}",
            )


def _zones_like(written: str, card: str) -> list[str]:
    """Return the zones of a region with the card, or else the zone with the nearest name."""
    known = sorted(
        {zone for row in load_zones() if not card or row.card == card for zone in row.zones}
    )
    inside = [zone for zone in known if zone.startswith(f"{written}-")]
    near = nearest_word(written.lower().replace("_", "-").replace(" ", "-"), known, 2)
    return inside or [zone for zone in known if zone == near]


RULE = Rule(
    id="GCP006",
    name="zone-malformed",
    severity=Severity.ERROR,
    sources=("Compute Engine documentation, Regions and zones",),
    check=_check,
    bad=examples(
        example_spec(zones="[«us-central1»]"),
        example_spec(zones="[us-central1-a, «US-Central1-B»]"),
    ),
    good=examples(
        example_spec(zones="[us-central1-a, us-central1-b]"),
        example_spec("gpu: none\n", machine_type="n2-standard-8", zones="[europe-southwest1-a]"),
    ),
)
