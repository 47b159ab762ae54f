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

from provision.diagnostics import Severity
from provision.facts.machines import ZONE_PATTERN, region_of
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.text import format_list
from provision.rules.workbench_instances import workbench_instances

_REGION = re.compile(r"/(?:regions|locations)/([a-z]+-[a-z]+[0-9]+)/")
"""A region. Locations of keys may also be global, us, nam4 and so on (Cloud KMS documentation,
Locations).
"""


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        target = instance.target
        regions = {
            index: region_of(zone)
            for index, zone in enumerate(target.zones)
            if ZONE_PATTERN.fullmatch(zone)
        }
        for route, value, what in (
            (("subnet",), target.subnet, "the subnet"),
            (("boot_disk", "kms_key"), target.boot_disk.kms_key, "the key of the boot disk"),
            (("data_disk", "kms_key"), target.data_disk.kms_key, "the key of the data disk"),
        ):
            match = _REGION.search(value or "")
            if match:
                home = match[1]
            elif value and regions and what == "the subnet":
                home = next(iter(regions.values()))  # a subnet without its region
            else:
                continue
            away = [index for index, region in regions.items() if region != home]
            if not away:
                continue
            zones = format_list(target.zones[index] for index in away)
            message = f"{what} lies in {home}, and {zones} {'does' if len(away) == 1 else 'do'} not"
            help_text = f"name zones of {home} only, or one of {regions[away[0]]} here"
            if not match:
                listed = format_list(dict.fromkeys(regions.values()))
                message = f"the subnet lies in one region, and the zones in {listed}"
                help_text = f"name zones of one region only, as in {home}"
            yield RULE.diagnostic(
                message,
                instance.route(*route),
                why="It serves its own region only; elsewhere the instance is refused.",
                help=help_text,
                related=related_at(instance.route("zones", away[0]), "a zone of another region"),
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
