"""Managed end user credentials conflict with another field.

## What it does

Finds `managed_euc: true` with a `service_account`, with startup scripts in `metadata`, or alone.

## Why

With managed end user credentials the machine runs as Google's own service account; your own service
account is refused, and `startup-script` is not run. In projects that Google has not allowed it for,
the script that creates and verifies the environment is silently dropped, so `plan` refuses the
target.

## How to fix

Remove `managed_euc`, and give the person access with `access: {mode: single-user, owner: ...}`.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at

SCRIPTS = ("startup-script", "startup-script-url")


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        if not fields.managed_euc:
            continue
        related: tuple[RelatedLocation, ...] = ()
        scripts = [key for key in SCRIPTS if key in fields.metadata]
        if fields.service_account is not None:
            problem = (
                "with `managed_euc: true`, the instance runs as a Google-managed service account, "
                "but `service_account` sets a different one"
            )
            related = related_at(target.route_to("service_account"), "service account set here")
        elif scripts:
            problem = f"with `managed_euc: true`, the instance does not run {scripts[0]}"
            related = related_at(target.route_to("metadata", scripts[0]), "script set here")
        else:
            problem = (
                "`managed_euc` drops the startup script that creates and verifies the "
                "environment, unless Google has allowed it for the project"
            )
        yield RULE.diagnostic(
            problem,
            target.route_to("managed_euc"),
            why=(
                "With `managed_euc: true`, Google Cloud also silently drops the startup "
                "script that creates the environment: the instance starts, but nothing is "
                "installed or verified on it."
            ),
            help=(
                "remove `managed_euc`; to give access to one person, set `access: {mode: "
                "single-user, owner: ...}`"
            ),
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
    bad=examples(
        example_spec(managed_euc="«true»"),
        example_spec(managed_euc="«true»", service_account=None),
        example_spec(
            managed_euc="«true»", service_account=None, metadata='{startup-script: "true"}'
        ),
    ),
    good=examples(
        example_spec(managed_euc="false"),
        example_spec(access="{mode: single-user, owner: me@example.com}"),
    ),
)
