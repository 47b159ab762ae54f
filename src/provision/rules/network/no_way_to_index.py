"""The instance cannot reach a package index.

## What it does

Finds Workbench targets with neither a public IP, nor Cloud NAT, nor a mirror.

## Why

Private Google Access reaches Google's own services only. uv cannot fetch a package from PyPI, and
the installation ends in a timeout.

## How to fix

Say `nat: true` where the subnet has Cloud NAT, or name mirrors that can be reached, such as
repositories of Artifact Registry.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        target = instance.target
        if target.public_ip or target.nat or target.mirrors or not context.spec.packages:
            continue
        yield RULE.diagnostic(
            f"{instance.facts.name} has no public IP, no Cloud NAT and no mirror to install from",
            instance.facts.route,
            at=RoutePart.KEY,
            why="Private Google Access reaches Google's services only: uv cannot fetch a "
            "package from PyPI.",
            help="write nat: true where the subnet has Cloud NAT, or mirrors: {pypi: "
            "https://REGION-python.pkg.dev/PROJECT/REPOSITORY/simple}",
        )


RULE = Rule(
    id="NET001",
    name="no-way-to-index",
    severity=Severity.WARNING,
    sources=(
        "docs.cloud.google.com, Workbench instances, create an instance (network)",
        "Google Cloud documentation, Private Google Access",
    ),
    check=_check,
    bad=(
        Example(example_spec(nat=None), "wb"),
        Example(example_spec(nat="false", public_ip="false"), "wb"),
    ),
    good=examples(
        example_spec(nat="true"),
        example_spec(
            nat=None,
            mirrors='{pypi: "https://packages.example.com/simple", pytorch: '
            '"https://packages.example.com/pytorch"}',
        ),
        example_spec(nat=None).replace("packages: [torch]", "packages: []"),
    ),
)
