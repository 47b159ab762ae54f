"""The instance cannot reach a package index.

## What it does

Finds Workbench targets with neither a public IP, nor Cloud NAT, nor a mirror.

## Why

Private Google Access reaches Google's own services only. uv cannot fetch a package from PyPI, and the installation ends in a timeout.

## How to fix

Say `nat: true` where the subnet has Cloud NAT, or name mirrors that can be reached, such as repositories of Artifact Registry.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import At, Diagnostic, Severity
from provision.rules.instances import instances, sample
from provision.rules.rule import Case, Example, Rule


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each instance that is cut off."""
    for instance in instances(case):
        target = instance.target
        if target.public_ip or target.nat or target.mirrors or not case.spec.packages:
            continue
        yield RULE.found(
            f"{instance.site.name} has no public IP, no Cloud NAT and no mirror to install from",
            instance.site.route,
            at=At.KEY,
            why="Private Google Access reaches Google's services only: uv cannot fetch a package from PyPI.",
            way_out="write nat: true where the subnet has Cloud NAT, or mirrors: {pypi: https://REGION-python.pkg.dev/PROJECT/REPOSITORY/simple}",
        )


RULE = Rule(
    id="NET001",
    name="no-way-to-index",
    severity=Severity.WARNING,
    summary="The instance cannot reach a package index.",
    sources=("docs.cloud.google.com, Workbench instances, create an instance (network)", "Google Cloud documentation, Private Google Access"),
    page=__doc__,
    check=check,
    bad=(
        Example(sample(nat=None), "wb"),
        Example(sample(nat="false", public_ip="false"), "wb"),
    ),
    good=(
        Example(sample(nat="true")),
        Example(sample(nat=None, mirrors='{pypi: "https://packages.example.com/simple", pytorch: "https://packages.example.com/pytorch"}')),
        Example(sample(nat=None).replace("packages: [torch]", "packages: []")),
    ),
)
