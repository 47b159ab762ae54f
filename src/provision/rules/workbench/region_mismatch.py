"""A subnet or a key is not in the region of the zones.

## What it does

Reads the region out of `subnet` and out of each `kms_key`, and compares it with the regions of the
zones. A `subnet` that is named without its region is compared too: the zones must be in one region.
Keys in `global` and in multi-regions are accepted.

## Why

A subnet serves one region, and a disk is encrypted with a key of the same region. In any other zone
the instance is refused.

## How to fix

Name zones of that region only, or a subnet and a key of the region of the zones. For zones in
several regions leave `subnet` out, or make a target for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Route, Severity
from provision.facts.machines import ZONE_PATTERN, region_of
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list
from provision.rules.workbench_instances import WorkbenchInstance, workbench_instances

_REGION = re.compile(r"/(?:regions|locations)/([a-z]+-[a-z]+[0-9]+)/")
"""A region. Locations of keys may also be global, us, nam4 and so on (Cloud KMS documentation,
Locations).
"""


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        for route, value, what in _regional_resources(instance):
            match = _REGION.search(value)
            if match is None:
                if what == "the subnet" and value:
                    yield from _zones_in_several_regions(instance, route)
                continue
            away = [
                zone
                for zone in instance.target.zones
                if ZONE_PATTERN.fullmatch(zone) and region_of(zone) != match[1]
            ]
            if away:
                yield _finding(instance, route, what, match[1], tuple(away))


def _zones_in_several_regions(instance: WorkbenchInstance, route: Route) -> Findings:
    """Return a finding for a subnet without a region if the zones are in several regions."""
    regions = tuple(
        dict.fromkeys(
            region_of(zone) for zone in instance.target.zones if ZONE_PATTERN.fullmatch(zone)
        )
    )
    if len(regions) < 2:
        return
    other = next(
        number
        for number, zone in enumerate(instance.target.zones)
        if ZONE_PATTERN.fullmatch(zone) and region_of(zone) != regions[0]
    )
    yield RULE.diagnostic(
        f"the subnet lies in one region, and the zones in {format_list(regions)}",
        route,
        why="It serves its own region only; elsewhere the instance is refused.",
        help=f"name zones of one region only, as in {regions[0]}",
        related=related_at(instance.route("zones", other), "a zone of another region"),
    )


def _regional_resources(instance: WorkbenchInstance) -> Iterator[tuple[Route, str, str]]:
    target = instance.target
    yield instance.route("subnet"), target.subnet or "", "the subnet"
    yield (
        instance.route("boot_disk", "kms_key"),
        target.boot_disk.kms_key or "",
        "the key of the boot disk",
    )
    yield (
        instance.route("data_disk", "kms_key"),
        target.data_disk.kms_key or "",
        "the key of the data disk",
    )


def _finding(
    instance: WorkbenchInstance, route: Route, what: str, region: str, away: tuple[str, ...]
) -> Diagnostic:
    first = instance.target.zones.index(away[0])
    return RULE.diagnostic(
        f"{what} lies in {region}, and {format_list(away)} "
        f"{'does' if len(away) == 1 else 'do'} not",
        route,
        why="It serves its own region only; elsewhere the instance is refused.",
        help=f"name zones of {region} only, or one of {region_of(away[0])} here",
        related=related_at(instance.route("zones", first), "a zone of another region"),
    )


RULE = Rule(
    id="GCP008",
    name="region-mismatch",
    severity=Severity.ERROR,
    sources=(
        "notebooks.v2 discovery document, NetworkInterface.subnet and BootDisk.kmsKey",
        "Cloud KMS documentation, Locations",
    ),
    check=_check,
    bad=(
        Example(
            example_spec(subnet="projects/my-project/regions/us-east1/subnetworks/ml"),
            "projects/my-project/regions/us-east1/subnetworks/ml",
        ),
        Example(example_spec(subnet="ml", zones="[us-central1-a, us-east1-b]"), "ml"),
        Example(
            example_spec(
                data_disk="{kms_key: "
                "projects/my-project/locations/europe-west4/keyRings/ring/cryptoKeys/key}"
            ),
            "projects/my-project/locations/europe-west4/keyRings/ring/cryptoKeys/key",
        ),
    ),
    good=examples(
        example_spec(subnet="projects/my-project/regions/us-central1/subnetworks/ml"),
        example_spec(
            subnet="ml",
            data_disk="{kms_key: "
            "projects/my-project/locations/global/keyRings/ring/cryptoKeys/key}",
        ),
    ),
)
