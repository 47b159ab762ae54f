"""The instance has a public IP address.

## What it does

Finds `public_ip: true`.

## Why

A public address exposes the machine to attacks. Many organizations forbid it
(`constraints/compute.vmExternalIpAccess`), and Google Cloud then rejects the instance. JupyterLab
does not need it, as it is reached through Google's proxy.

## How to fix

Remove `public_ip`, and let the subnet reach the internet through Cloud NAT (`nat: true`).
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.edits import replace_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        if not fields.public_ip:
            continue
        route = target.route_to("public_ip")
        yield RULE.diagnostic(
            f"target `{target.name}` has a public IP address",
            route,
            why=(
                "A public address exposes the machine to attacks, and Google Cloud rejects the "
                "instance if the policy compute.vmExternalIpAccess forbids it."
            ),
            help="remove `public_ip`, and set `nat: true` if the subnet has Cloud NAT",
            fix=replace_fix("set `public_ip: false`", route, "false"),
        )


RULE = Rule(
    id="NET002",
    name="public-address",
    severity=Severity.WARNING,
    sources=(
        "Google Cloud documentation, Organization policy constraints (compute.vmExternalIpAccess)",
        "GoogleCloudPlatform/compute-image-tools#1834",
    ),
    check=_check,
    bad=examples(
        example_spec(public_ip="«true»"),
        example_spec(public_ip="«true»", nat=None),
    ),
    good=examples(example_spec(public_ip="false"), example_spec()),
)
