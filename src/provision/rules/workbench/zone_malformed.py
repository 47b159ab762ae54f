"""This is not the name of a zone.

## What it does

Looks at the form of each zone: a region, a hyphen and a letter, as in us-central1-a.

## Why

An instance is made in a zone, never in a region. Google Cloud refuses any other name.

## How to fix

Name zones of the region, in the order in which they are to be tried.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.lazy_tables import load_zones
from provision.facts.machines import REGION_PATTERN, ZONE_PATTERN
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.text import format_list, json_quote
from provision.rules.workbench_instances import workbench_instances
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        card = instance.facts.card.name if instance.facts.card else ""
        for index, zone in enumerate(instance.target.zones):
            if ZONE_PATTERN.fullmatch(zone):
                continue
            near = format_list(_zones_like(zone, card))
            what = "a region" if REGION_PATTERN.fullmatch(zone) else "not the name of a zone"
            yield RULE.diagnostic(
                f"{json_quote(zone)} is {what}",
                instance.route("zones", index),
                why="An instance is made in a zone: a region, a hyphen and a letter.",
                help=f"write {near or 'a zone, as in us-central1-a'}",
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
    bad=(
        Example(example_spec(zones="[us-central1]"), "us-central1"),
        Example(example_spec(zones="[us-central1-a, US-Central1-B]"), "US-Central1-B"),
    ),
    good=examples(
        example_spec(zones="[us-central1-a, us-central1-b]"),
        example_spec("gpu: none\n", machine_type="n2-standard-8", zones="[europe-southwest1-a]"),
    ),
)
