"""Managed end user credentials contradict another field.

## What it does

Finds `managed_euc: true` with a `service_account`, with startup scripts in `metadata`, and by
itself.

## Why

With managed end user credentials the machine runs as Google's own service account; one of yours is
refused, and `startup-script` is not run. The script that makes and verifies the environment is
dropped without a word in projects that Google has not allowed it for, so `plan` refuses it.

## How to fix

Leave `managed_euc` out, and give the person access with `access: {mode: single-user, owner: ...}`.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import workbench_instances

SCRIPTS = ("startup-script", "startup-script-url")


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        if not instance.target.managed_euc:
            continue
        related: tuple[RelatedLocation, ...] = ()
        scripts = [key for key in SCRIPTS if key in instance.target.metadata]
        if instance.target.service_account is not None:
            problem = (
                "managed_euc runs as Google's own service account, and service_account names "
                "another"
            )
            related = related_at(instance.route("service_account"), "service account named here")
        elif scripts:
            problem = f"managed_euc does not run {scripts[0]}"
            related = related_at(instance.route("metadata", scripts[0]), "script given here")
        else:
            problem = (
                "managed_euc drops the startup script that makes and verifies the environment, "
                "unless Google has allowed it"
            )
        yield RULE.diagnostic(
            problem,
            instance.route("managed_euc"),
            why="The script is dropped without an error: the instance starts, and nothing is "
            "installed or verified on it.",
            help="leave managed_euc out; access: {mode: single-user, owner: ...} gives one "
            "person access",
            related=related,
        )


RULE = Rule(
    id="GCP012",
    name="managed-euc",
    severity=Severity.ERROR,
    sources=(
        "docs.cloud.google.com, Workbench instances, managed end user credentials",
        "GoogleCloudPlatform/magic-modules TestAccWorkbenchInstance_metadataEUC",
    ),
    check=_check,
    bad=(
        Example(example_spec(managed_euc="true"), "true"),
        Example(example_spec(managed_euc="true", service_account=None), "true"),
        Example(
            example_spec(
                managed_euc="true", service_account=None, metadata='{startup-script: "true"}'
            ),
            "true",
        ),
    ),
    good=examples(
        example_spec(managed_euc="false"),
        example_spec(access="{mode: single-user, owner: me@example.com}"),
    ),
)
