"""The GPU is not offered in this zone.

## What it does

Looks each zone up in the table of where Google Cloud has which card. It is an error when no zone of
the target has it, a warning when another one does.

## Why

Creating the instance fails there, whatever the quota; only the next zone of the list is tried.

## How to fix

Take the zones of the finding: in the same region if possible, else the nearest.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.lazy_tables import load_zones
from provision.facts.machines import ZONE_PATTERN, region_of
from provision.facts.schema_platforms import CardZones
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list
from provision.rules.workbench_instances import (
    UNAVAILABLE_STATUS,
    workbench_instances,
)


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        card = instance.facts.card
        if card is None or not card.workbench or card.status in UNAVAILABLE_STATUS:
            continue
        rows = {row.region: row for row in load_zones() if row.card == card.name}
        zones = instance.target.zones
        without = [
            index
            for index, zone in enumerate(zones)
            if ZONE_PATTERN.fullmatch(zone) and not _may_have_card(rows.get(region_of(zone)), zone)
        ]
        for index in without if rows else ():
            evidence = next(iter(rows.values())).evidence
            severity = None
            why = "Creating the instance fails there, whatever the quota."
            if len(without) < len(zones):
                severity = Severity.WARNING
                why += " Only the next zone of the list is tried."
            settings = instance.facts.gpu_settings
            yield RULE.diagnostic(
                f"{zones[index]} has no {settings.gpu.type} (as of {evidence.as_of})",
                instance.route("zones", index),
                severity=severity,
                evidence=evidence,
                why=why,
                help=f"take {format_list(_nearest_zones(zones[index], rows))}",
                related=related_at(settings.gpu_route, "GPU asked for here"),
            )


def _may_have_card(row: CardZones | None, zone: str) -> bool:
    """Return whether a zone may have the card; its region decides if its zones are unknown."""
    return row is not None and (not row.zones or zone in row.zones)


def _nearest_zones(zone: str, rows: dict[str, CardZones]) -> tuple[str, ...]:
    """Return zones of the region, else of regions with a similar name, else of any region."""
    region = region_of(zone)
    beginnings = (region, region.rstrip("0123456789"), region.split("-", 1)[0], "")
    for beginning in beginnings:
        zones = tuple(
            name
            for row in rows.values()
            if row.region.startswith(beginning)
            for name in row.zones or (f"a zone of {row.region}",)
        )
        if zones:
            return zones
    return ()


RULE = Rule(
    id="GCP007",
    name="zone-lacks-gpu",
    severity=Severity.ERROR,
    sources=(
        "Cyclenerd/google-cloud-pricing-cost-calculator tools/acceleratortyperegion.csv",
        "skypilot-org/skypilot-catalog catalogs/v9/gcp/vms.csv",
    ),
    check=_check,
    bad=(
        Example(example_spec(zones="[us-central1-f]"), "us-central1-f"),
        Example(example_spec(zones="[us-central1-a, europe-north1-a]"), "europe-north1-a"),
        Example(
            example_spec("gpu: A100-80GB\n", machine_type="auto", zones="[us-west1-b]"),
            "us-west1-b",
        ),
    ),
    good=examples(
        example_spec(zones="[us-central1-a, us-central1-b]"),
        example_spec("gpu: RTX-PRO-6000\n", machine_type="auto", zones="[us-central1-a]"),
        example_spec("gpu: none\n", machine_type="n2-standard-8", zones="[europe-north1-a]"),
    ),
)
