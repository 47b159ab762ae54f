"""More free disk is required than the disk is large.

## What it does

Compares `requires.disk` with the data disk of a Workbench instance (100 GB where none is asked
for), and with the disk of a Colab machine.

## Why

The verification compares free disk on the device, and would fail there.

## How to fix

Make the data disk larger, or require what the work needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.memory.capacity import disk_capacity, required_size
from provision.rules.rule import Example, LintContext, Rule, related_if_written
from provision.rules.workbench_instances import example_spec


def check(case: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each requirement that a disk does not meet."""
    for site in case.targets:
        need = required_size(case, site, "disk")
        room = disk_capacity(case, site) if need is not None else None
        if need is None or room is None or room.bytes >= need.bytes:
            continue
        larger = (
            f"write data_disk: {{size: {-(-need.bytes // 10**10) * 10}GB}}, or "
            if isinstance(site.target, WorkbenchTarget)
            else ""
        )
        yield RULE.diagnostic(
            f"disk: {need.text} of free disk is required, and {room.provider} has "
            f"{room.bytes / 10**9:.0f} GB",
            need.route,
            severity=room.at_most(Severity.ERROR),
            why="The verification would fail on the device.",
            way_out=f"{larger}require less than {room.bytes / 10**9:.0f}GB",
            related=related_if_written(case, room.route, "disk of this place"),
        )


RULE = Rule(
    id="MEM006",
    name="disk-beyond-machine",
    severity=Severity.ERROR,
    summary="More free disk is required than the disk is large.",
    sources=(
        "notebooks.v2 discovery document, DataDisk.diskSizeGb",
        "chrisjmccormick.github.io, Colab GPUs, 2026-03-09",
    ),
    page=__doc__,
    check=check,
    bad=(
        Example(example_spec("gpu: L4\nrequires: {disk: 101GB}\n"), "101GB"),
        Example(
            example_spec("gpu: L4\nrequires: {disk: 600GB}\n", data_disk="{size: 500GB}"), "600GB"
        ),
        Example(
            'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {disk: 200GB}\ntargets: '
            '{colab: {kind: colab, runtime: "2026.07"}}\n',
            "200GB",
        ),
    ),
    good=(
        Example(example_spec("gpu: L4\nrequires: {disk: 100GB}\n")),
        Example(example_spec("gpu: L4\nrequires: {disk: 400GB}\n", data_disk="{size: 500GB}")),
        Example(
            'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {disk: 100GB}\ntargets: '
            '{colab: {kind: colab, runtime: "2026.07"}}\n'
        ),
    ),
)
