"""A subnet or a key is not in the region of the zones.

## What it does

Reads the region from `subnet` and from each `kms_key`, and compares it with the regions of the
zones. If `subnet` does not include its region, the zones must be in one region. Keys in `global`
and in multi-regions are accepted.

## Why

A subnet is in one region, and a disk is encrypted with a key in the same region. Google Cloud
rejects an instance in a zone of a different region.

## How to fix

Use only zones in that region, or a subnet and a key in the region of the zones. For zones in
several regions, remove `subnet`, or create a target for each region.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.facts.machines import ZONE_PATTERN, region_of
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list

_REGION = re.compile(r"/(?:regions|locations)/([a-z]+-[a-z]+[0-9]+)/")
"""A region. Locations of keys may also be global, us, nam4 and so on (Cloud KMS documentation,
Locations).
"""


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        regions = {
            index: region_of(zone)
            for index, zone in enumerate(fields.zones)
            if ZONE_PATTERN.fullmatch(zone)
        }
        for route, value, what in (
            (("subnet",), fields.subnet, "subnet"),
            (("boot_disk", "kms_key"), fields.boot_disk.kms_key, "boot disk key"),
            (("data_disk", "kms_key"), fields.data_disk.kms_key, "data disk key"),
        ):
            match = _REGION.search(value or "")
            if match:
                region = match[1]
            elif value and regions and what == "subnet":
                region = next(iter(regions.values()))  # a subnet without its region
            else:
                continue
            elsewhere = [index for index, other in regions.items() if other != region]
            if not elsewhere:
                continue
            zones = format_list(fields.zones[index] for index in elsewhere)
            message = f"the {what} is in {region}, but some zones are not: {zones}"
            help_text = f"use only zones in {region}"
            if len(set(regions.values())) == 1:
                help_text += f", or a {what} in {regions[elsewhere[0]]}"
            if not match:
                listed = format_list(dict.fromkeys(regions.values()))
                message = f"a subnet is in one region, but the zones are in several: {listed}"
                help_text = f"use zones in one region only, such as {region}"
            yield RULE.diagnostic(
                message,
                target.route_to(*route),
                why=(
                    f"A {what} can only be used in its own region; Google Cloud rejects an "
                    "instance in a different region."
                ),
                help=help_text,
                related=related_at(
                    target.route_to("zones", elsewhere[0]), "zone in a different region"
                ),
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
    bad=examples(
        example_spec(subnet="«projects/my-project/regions/us-east1/subnetworks/ml»"),
        example_spec(subnet="«ml»", zones="[us-central1-a, us-east1-b]"),
        example_spec(
            data_disk="{kms_key: "
            "«projects/my-project/locations/europe-west4/keyRings/ring/cryptoKeys/key»}"
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
