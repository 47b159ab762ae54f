"""The instance has an address on the internet.

## What it does

Finds `public_ip: true`.

## Why

An address on the internet can be attacked, and many organizations forbid it
(`constraints/compute.vmExternalIpAccess`): then the instance is refused. JupyterLab does not need
it, as it is reached through Google's proxy.

## How to fix

Leave `public_ip` out, and let the subnet reach the internet through Cloud NAT (`nat: true`).
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import replace_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        if not instance.target.public_ip:
            continue
        route = instance.route("public_ip")
        yield RULE.diagnostic(
            f"{instance.facts.name} has an address on the internet",
            route,
            why="It can be attacked there, and where compute.vmExternalIpAccess forbids it the "
            "instance is refused.",
            help="leave public_ip out, and write nat: true where the subnet has Cloud NAT",
            fix=replace_fix("write public_ip: false", route, "false"),
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
    bad=(
        Example(example_spec(public_ip="true"), "true"),
        Example(example_spec(public_ip="true", nat=None), "true"),
    ),
    good=examples(example_spec(public_ip="false"), example_spec()),
)
