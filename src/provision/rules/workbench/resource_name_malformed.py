"""Google Cloud does not accept a name.

## What it does

Looks at the form of the names of project, bucket, service account, network, subnet, reservation and
keys.

## Why

Google Cloud refuses it, or looks for something that cannot exist.

## How to fix

Write it in the form that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.diagnostics import Route, Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.text import json_quote
from provision.rules.workbench_instances import (
    RESOURCE_NAME_PATTERN,
    WorkbenchTargetFacts,
    workbench_instances,
)

_PROJECT = r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]"
_API = r"(?:https://www\.googleapis\.com/compute/v1/)?"
NAME_PATTERNS = {
    "project": (
        _PROJECT,
        (
            "6 to 30 lower-case letters, digits and hyphens, a letter first, no hyphen last; "
            "the id of a project, not its title or number"
        ),
    ),
    "bucket": (
        r"gs://(?=[^/]{3,222}(?:/|$))[a-z0-9][a-z0-9_-]{0,61}[a-z0-9](?:\.[a-z0-9_-]{1,63})*(?<![._-])(?:/.*)?",
        "gs://BUCKET, with 3 to 63 lower-case letters, digits, hyphens and underscores",
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


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        for route, form, value in _resource_names(instance):
            pattern, description = NAME_PATTERNS[form]
            if re.fullmatch(pattern, value):
                continue
            yield RULE.diagnostic(
                f"{json_quote(value)} cannot be a {form.replace('_', ' ')}",
                route,
                why="Google Cloud refuses it, or looks for something that cannot exist.",
                help=f"write {description}",
            )


def _resource_names(instance: WorkbenchTargetFacts) -> Iterator[tuple[Route, str, str]]:
    for field in ("project", "bucket", "service_account", "network", "subnet", "reservation"):
        value = getattr(instance.target, field)
        if value is not None:
            yield instance.route(field), field, value
    for disk in ("boot_disk", "data_disk"):
        key = getattr(instance.target, disk).kms_key
        if key is not None:
            yield instance.route(disk, "kms_key"), "kms_key", key


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
    bad=(
        Example(example_spec(project="My Project"), "My Project"),
        Example(example_spec(project="proj1"), "proj1"),
        Example(example_spec(bucket="gs://my..bucket/provision"), "gs://my..bucket/provision"),
        Example(example_spec(data_disk="{kms_key: my-key}"), "my-key"),
        Example(example_spec(service_account="me@example.com"), "me@example.com"),
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
