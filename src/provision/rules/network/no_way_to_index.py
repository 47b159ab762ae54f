"""The instance cannot reach a package index.

## What it does

Finds Workbench targets with neither a public IP, nor Cloud NAT, nor a mirror.

## Why

Private Google Access reaches only Google's own services. uv cannot download a package from PyPI,
and the installation ends in a timeout.

## How to fix

Set `nat: true` if the subnet has Cloud NAT, or set mirrors that can be reached, such as Artifact
Registry repositories.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        if fields.public_ip or fields.nat or fields.mirrors or not context.spec.packages:
            continue
        yield RULE.diagnostic(
            f"target `{target.name}` specifies no public IP, no Cloud NAT and no mirror to "
            "install from",
            target.route,
            at=RoutePart.KEY,
            why="Private Google Access reaches only Google's services, so uv cannot download "
            "packages from PyPI.",
            help=(
                "if the subnet has Cloud NAT, set `nat: true`; otherwise, set `mirrors: {pypi: "
                "https://REGION-python.pkg.dev/PROJECT/REPOSITORY/simple}`"
            ),
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
        example_spec(packages="[]", nat=None),
    ),
)
