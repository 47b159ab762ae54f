"""A metadata key is not the author's to set, or not one at all.

## What it does

Looks for keys that Workbench protects, for keys that provision writes by itself, for keys that can
be set only when the instance is made, and at the form of keys and the size of all of them.

## Why

Workbench refuses the whole change: "metadata key ... is protected by Workbench Notebooks". A key
that provision sets too has two owners, and one of them loses.

## How to fix

Leave the key out, and use the field of the same meaning if it exists.
"""

from __future__ import annotations

import re

from provision.diagnostics import RoutePart, Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.text import json_quote
from provision.rules.workbench_instances import workbench_instances

KEY, ALL_BYTES = re.compile(r"[a-zA-Z0-9_-]{1,128}"), 512 * 1024
"""Form of a key, and bytes of all keys and values (compute.v1 discovery document, Metadata). A
value above its own bound, 256 KiB, cannot be in a spec.
"""
_OWNED = {
    "service": (
        "is Workbench's own",
        (
            "Workbench refuses the whole change with: metadata key is protected by Workbench "
            "Notebooks."
        ),
    ),
    "provision": (
        "is set by provision",
        "The plan writes this key by itself, and a key has one owner.",
    ),
    "create": (
        "can be set only when the instance is made",
        (
            "It is taken when the instance is made and never changed afterwards: another value "
            "means another instance."
        ),
    ),
}
"""For each owner of a key, a predicate of the key and the consequence."""


def _check(context: LintContext) -> Findings:
    refused = "Google Cloud refuses the instance."
    for instance in workbench_instances(context):
        metadata = instance.target.metadata
        for key in metadata:
            owned = next((row for row in context.facts.metadata_keys if row.matches(key)), None)
            if owned is not None:
                predicate, why = _OWNED[owned.owner]
                yield RULE.diagnostic(
                    f"the metadata key {key} {predicate}",
                    instance.route("metadata", key),
                    at=RoutePart.KEY,
                    severity=Severity.WARNING if owned.owner == "create" else None,
                    evidence=owned.evidence,
                    why=why,
                    help=f"use the field {owned.instead}" if owned.instead else "leave it out",
                )
            elif not KEY.fullmatch(key):
                yield RULE.diagnostic(
                    f"{json_quote(key)} cannot be a metadata key",
                    instance.route("metadata", key),
                    at=RoutePart.KEY,
                    why=refused,
                    help="write letters, digits, hyphens and underscores, at most 128",
                )
        total = len("".join((*metadata, *metadata.values())).encode())
        if total >= ALL_BYTES:
            yield RULE.diagnostic(
                f"all metadata has {total} bytes, and less than {ALL_BYTES} are taken",
                instance.route("metadata"),
                why=refused,
                help="keep it in the bucket, and its address here",
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
    bad=(
        Example(example_spec(metadata='{proxy-mode: "service_account"}'), "proxy-mode"),
        Example(example_spec(metadata='{idle-timeout-seconds: "3600"}'), "idle-timeout-seconds"),
        Example(
            example_spec(metadata='{serial-port-logging-enable: "true"}'),
            "serial-port-logging-enable",
        ),
        Example(example_spec(metadata='{my.key: "1"}'), "my.key"),
    ),
    good=examples(
        example_spec(metadata='{notebook-disable-downloads: "true", my_key: "1"}'),
        example_spec(metadata='{report-event-health: "true", titles: "x"}'),
    ),
)
