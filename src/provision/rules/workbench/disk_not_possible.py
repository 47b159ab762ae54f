"""A disk cannot be created as declared.

## What it does

Finds disk types that an instance cannot boot from, and sizes above the maximum disk size.

## Why

Google Cloud rejects the instance.

## How to fix

Use a different type for the boot disk, and keep fast storage for the data disk.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.field_types import parse_size
from provision.kinds import WorkbenchTarget
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    largest = context.facts.limits["largest disk"]
    disks = context.facts.disks
    for target, fields in context.targets_of(WorkbenchTarget):
        kind = disks.get(fields.boot_disk.type)
        if kind is not None and not kind.boot:
            route = target.route_to("boot_disk", "type")
            bootable = (row.type for row in disks.values() if row.boot)
            fix = set_field_fix(
                context, route, next(name for name in bootable if name.startswith("hyperdisk"))
            )
            yield RULE.diagnostic(
                f"{kind.type} cannot be used for the boot disk",
                route,
                evidence=kind.evidence,
                why="Workbench supports this disk type only for the data disk.",
                help=f"{fix.title} for the boot disk, and use {kind.type} for the data disk",
                fix=fix,
            )
        for disk in ("boot_disk", "data_disk"):
            size = getattr(fields, disk).size
            if size is not None and parse_size(size) > largest.value * 10**9:
                yield RULE.diagnostic(
                    f"{disk} of {size} exceeds the maximum disk size of {largest.value:g} GB",
                    target.route_to(disk, "size"),
                    why="Google Cloud rejects the request to create the instance.",
                    help=f"use at most {largest.value:g}GB, and store the rest in a bucket",
                )


RULE = Rule(
    id="GCP018",
    name="disk-not-possible",
    severity=Severity.ERROR,
    sources=("notebooks.v2 discovery document, revision 20261006, BootDisk and DataDisk",),
    check=_check,
    bad=examples(
        example_spec(boot_disk="{type: «hyperdisk-extreme»}"),
        example_spec(data_disk="{size: «64001GB»}"),
    ),
    good=examples(
        example_spec(boot_disk="{type: ssd}", data_disk="{type: hyperdisk-extreme}"),
        example_spec(data_disk="{size: 64000GB}"),
    ),
)
