"""Google Cloud does not accept a name.

## What it does

Checks the form of the names of project, bucket, service account, network, subnet, reservation and
keys.

## Why

Google Cloud rejects the name, or finds no resource with that name.

## How to fix

Use the form that the finding shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.diagnostics import Route, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.text import json_quote
from provision.rules.workbench_instances import RESOURCE_NAME_PATTERN

_PROJECT = r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]"
_API = r"(?:https://www\.googleapis\.com/compute/v1/)?"
NAME_PATTERNS = {
    "project": (
        _PROJECT,
        (
            "the project ID, not the project name or number: 6 to 30 lowercase letters, digits and "
            "hyphens, starting with a letter and not ending with a hyphen"
        ),
    ),
    "bucket": (
        r"gs://(?=[^/]{3,222}(?:/|$))[a-z0-9][a-z0-9_-]{0,61}[a-z0-9](?:\.[a-z0-9_-]{1,63})*(?<![._-])(?:/.*)?",
        "gs://BUCKET, with 3 to 63 lowercase letters, digits, hyphens and underscores",
    ),
    "service_account": (
        r"[^@\s]+@(?:[a-z0-9.-]+\.)?gserviceaccount\.com",
        "NAME@PROJECT.iam.gserviceaccount.com",
    ),
    "network": (
        rf"{RESOURCE_NAME_PATTERN}|{_API}projects/{_PROJECT}/global/networks/{RESOURCE_NAME_PATTERN}",
        "NAME or projects/PROJECT/global/networks/NAME",
    ),
    "subnet": (
        rf"{RESOURCE_NAME_PATTERN}|{_API}projects/{_PROJECT}/regions/[a-z0-9-]+/subnetworks/{RESOURCE_NAME_PATTERN}",
        "NAME or projects/PROJECT/regions/REGION/subnetworks/NAME",
    ),
    "reservation": (
        rf"{RESOURCE_NAME_PATTERN}|projects/{_PROJECT}/reservations/{RESOURCE_NAME_PATTERN}",
        "NAME or projects/PROJECT/reservations/NAME",
    ),
    "kms_key": (
        rf"projects/{_PROJECT}/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]{{1,63}}/cryptoKeys/[A-Za-z0-9_-]{{1,63}}",
        "projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY",
    ),
}

_WORDS = {"project": "project ID"}
"""Words for fields that differ from their names."""


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        for route, value in _resource_names(fields):
            field = str(route[-1])
            pattern, description = NAME_PATTERNS[field]
            if re.fullmatch(pattern, value):
                continue
            yield RULE.diagnostic(
                f"{json_quote(value)} is not a valid {_WORDS.get(field, field.replace('_', ' '))}",
                target.route_to(*route),
                why="Google Cloud rejects it, or finds no resource with that name.",
                help=f"use {description}",
            )


def _resource_names(fields: WorkbenchTarget) -> Iterator[tuple[Route, str]]:
    for field in ("project", "bucket", "service_account", "network", "subnet", "reservation"):
        value = getattr(fields, field)
        if value is not None:
            yield (field,), value
    for disk in ("boot_disk", "data_disk"):
        key = getattr(fields, disk).kms_key
        if key is not None:
            yield (disk, "kms_key"), key


RULE = Rule(
    id="GCP019",
    name="resource-name-malformed",
    severity=Severity.ERROR,
    sources=(
        "cloudresourcemanager.v3 discovery document, Project.projectId",
        (
            "notebooks.v2 discovery document, NetworkInterface, BootDisk.kmsKey and "
            "ReservationAffinity"
        ),
        "compute.v1 discovery document, Network.name",
        "Cloud Storage documentation, Bucket names",
    ),
    check=_check,
    bad=examples(
        example_spec(project="«My Project»"),
        example_spec(project="«proj1»"),
        example_spec(bucket="«gs://my..bucket/provision»"),
        example_spec(data_disk="{kms_key: «my-key»}"),
        example_spec(service_account="«me@example.com»"),
    ),
    good=examples(
        example_spec(project="projct", bucket="gs://abc/x", network="default", subnet="ml"),
        example_spec(project='"example.com:my-project"', bucket='"gs://data.example.com"'),
        example_spec(
            data_disk="{kms_key: "
            "projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key}"
        ),
    ),
)
