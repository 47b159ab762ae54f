"""A metadata key cannot be set, or is not valid.

## What it does

Finds keys that Workbench protects, keys that provision sets itself, and keys that can be set only
when the instance is created. Checks the form of keys and the size of all metadata.

## Why

Workbench rejects the whole request: "metadata key ... is protected by Workbench Notebooks". If you
set a key that provision sets too, one of the two values is lost.

## How to fix

Remove the key, and use the field with the same meaning if it exists.
"""

from __future__ import annotations

import re

from provision.diagnostics import RoutePart, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.text import json_quote

KEY, ALL_BYTES = re.compile(r"[a-zA-Z0-9_-]{1,128}"), 512 * 1024
"""Form of a key, and bytes of all keys and values (compute.v1 discovery document, Metadata). A
value above its own bound, 256 KiB, cannot be in a spec.
"""
_OWNED = {
    "service": (
        "is protected by Workbench",
        (
            "Workbench rejects the whole request with: metadata key is protected by Workbench "
            "Notebooks."
        ),
    ),
    "provision": (
        "is set by provision",
        "One of the two values would be lost.",
    ),
    "create": (
        "can be set only when the instance is created",
        "The value cannot be changed later: a different value requires a new instance.",
    ),
}
"""For each owner of a key, a predicate of the key and the consequence."""


def _check(context: LintContext) -> Findings:
    rejected = "Google Cloud rejects the request to create the instance."
    for target, fields in context.targets_of(WorkbenchTarget):
        metadata = fields.metadata
        for key in metadata:
            owned = next((row for row in context.facts.metadata_keys if row.matches(key)), None)
            if owned is not None:
                predicate, why = _OWNED[owned.owner]
                yield RULE.diagnostic(
                    f"the metadata key {key} {predicate}",
                    target.route_to("metadata", key),
                    at=RoutePart.KEY,
                    severity=Severity.WARNING if owned.owner == "create" else None,
                    evidence=owned.evidence,
                    why=why,
                    help=(
                        f"use the field `{owned.instead}` instead" if owned.instead else "remove it"
                    ),
                )
            elif not KEY.fullmatch(key):
                yield RULE.diagnostic(
                    f"{json_quote(key)} is not a valid metadata key",
                    target.route_to("metadata", key),
                    at=RoutePart.KEY,
                    why=rejected,
                    help="use at most 128 letters, digits, hyphens and underscores",
                )
        total = len("".join((*metadata, *metadata.values())).encode())
        if total >= ALL_BYTES:
            yield RULE.diagnostic(
                f"the metadata is {total / 1024:.1f} KiB in size, but must be smaller than "
                f"{ALL_BYTES // 1024} KiB",
                target.route_to("metadata"),
                why=rejected,
                help="store large values in the bucket, and put only their paths in the metadata",
            )


RULE = Rule(
    id="GCP017",
    name="metadata-key",
    severity=Severity.ERROR,
    sources=(
        "docs.cloud.google.com, Workbench instances, manage metadata",
        "hashicorp/terraform-provider-google#19342",
        "compute.v1 discovery document, Metadata",
    ),
    check=_check,
    bad=examples(
        example_spec(metadata='{«proxy-mode»: "service_account"}'),
        example_spec(metadata='{«idle-timeout-seconds»: "3600"}'),
        example_spec(metadata='{«serial-port-logging-enable»: "true"}'),
        example_spec(metadata='{«my.key»: "1"}'),
    ),
    good=examples(
        example_spec(metadata='{notebook-disable-downloads: "true", my_key: "1"}'),
        example_spec(metadata='{report-event-health: "true", titles: "x"}'),
    ),
)
