"""A disk cannot be had like this.

## What it does

Finds kinds of disk that an instance cannot start from, and sizes above what a disk may have.

## Why

Google Cloud refuses the instance.

## How to fix

Take another kind for the boot disk, and keep fast storage for the data disk.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.field_types import parse_size
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances


def _check(context: LintContext) -> Findings:
    largest = context.facts.limits["largest disk"]
    for instance in workbench_instances(context):
        kind = context.facts.disks.get(instance.target.boot_disk.type)
        if kind is not None and not kind.boot:
            near = next(
                row.type
                for row in context.facts.disks.values()
                if row.boot and row.type.startswith("hyperdisk")
            )
            yield RULE.diagnostic(
                f"an instance cannot start from a disk of type {kind.type}",
                instance.route("boot_disk", "type"),
                evidence=kind.evidence,
                why="It can be a data disk only.",
                help=f"write {near}, and keep {kind.type} for the data disk",
                fix=set_field_fix(context, instance.route("boot_disk", "type"), near),
            )
        for disk in ("boot_disk", "data_disk"):
            size = getattr(instance.target, disk).size
            if size is not None and parse_size(size) > largest.value * 10**9:
                yield RULE.diagnostic(
                    f"{disk} of {size} is larger than the {largest.value:g} GB that a disk "
                    "may have",
                    instance.route(disk, "size"),
                    why="Google Cloud refuses the instance.",
                    help=f"write at most {largest.value:g}GB, and keep the rest in a bucket",
                )


RULE = Rule(
    id="GCP018",
    name="disk-not-possible",
    severity=Severity.ERROR,
    sources=("notebooks.v2 discovery document, revision 20261006, BootDisk and DataDisk",),
    check=_check,
    bad=(
        Example(example_spec(boot_disk="{type: hyperdisk-extreme}"), "hyperdisk-extreme"),
        Example(example_spec(data_disk="{size: 64001GB}"), "64001GB"),
    ),
    good=examples(
        example_spec(boot_disk="{type: ssd}", data_disk="{type: hyperdisk-extreme}"),
        example_spec(data_disk="{size: 64000GB}"),
    ),
)
