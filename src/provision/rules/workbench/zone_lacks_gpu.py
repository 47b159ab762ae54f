"""The zone does not offer the requested GPU.

## What it does

Looks up each zone in the table of GPUs per zone. It is an error if no zone of the target offers the
GPU, a warning if a different zone does.

## Why

An instance cannot be created in that zone, whatever the quota; only the next zone in the list is
tried.

## How to fix

Use the zones that the finding names: in the same region if possible, otherwise the nearest ones.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.lazy_tables import load_zones
from provision.facts.machines import ZONE_PATTERN, region_of
from provision.facts.schema_platforms import CardZones
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples, related_gpu
from provision.rules.text import format_alternatives
from provision.rules.workbench_instances import is_available


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        card = target.card
        if card is None or not is_available(card):
            continue
        rows = {row.region: row for row in load_zones() if row.card == card.name}
        zones = fields.zones
        without = [
            index
            for index, zone in enumerate(zones)
            if ZONE_PATTERN.fullmatch(zone) and not _may_have_card(rows.get(region_of(zone)), zone)
        ]
        for index in without if rows else ():
            evidence = next(iter(rows.values())).evidence
            severity = None
            why = "An instance with this GPU cannot be created there, regardless of the quota."
            if len(without) < len(zones):
                severity = Severity.WARNING
                why += " Other zones in the list are tried instead."
            yield RULE.diagnostic(
                f"{zones[index]} does not offer {target.gpu_settings.gpu.type} (as of "
                f"{evidence.as_of})",
                target.route_to("zones", index),
                severity=severity,
                evidence=evidence,
                why=why,
                help=f"use {format_alternatives(_nearest_zones(zones[index], rows))}",
                related=related_gpu(target),
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
            for name in row.zones or (f"a zone in {row.region}",)
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
    bad=examples(
        example_spec(zones="[«us-central1-f»]"),
        example_spec(zones="[us-central1-a, «europe-north1-a»]"),
        example_spec("gpu: A100-80GB\n", machine_type="auto", zones="[«us-west1-b»]"),
    ),
    good=examples(
        example_spec(zones="[us-central1-a, us-central1-b]"),
        example_spec("gpu: RTX-PRO-6000\n", machine_type="auto", zones="[us-central1-a]"),
        example_spec("gpu: none\n", machine_type="n2-standard-8", zones="[europe-north1-a]"),
    ),
)
