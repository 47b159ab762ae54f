"""More free disk is required than the disk is large.

## What it does

Compares `requires.disk` with the data disk of a Workbench instance (100 GB by default), and with
the disk of a Colab machine.

## Why

The verification compares free disk on the device, and would fail there.

## How to fix

Make the data disk larger, or require what the work needs.
"""

from __future__ import annotations

import math

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import disk_capacity, unmet_sizes
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_if_written


def _check(context: LintContext) -> Findings:
    for target, required, disk in unmet_sizes(context, "disk", disk_capacity):
        disk_gb = f"{disk.bytes / 10**9:.0f}"
        help_text = f"require less than {disk_gb}GB"
        if isinstance(target.target, WorkbenchTarget):
            size = math.ceil(required.bytes / 10**10) * 10
            help_text = f"write data_disk: {{size: {size}GB}}, or {help_text}"
        yield RULE.diagnostic(
            f"disk: {required.text} of free disk is required, and {disk.provider} has {disk_gb} GB",
            required.route,
            evidence=disk.evidence,
            why="The verification would fail on the device.",
            help=help_text,
            related=related_if_written(context, disk.route, "disk of this place"),
        )


RULE = Rule(
    id="MEM006",
    name="disk-beyond-machine",
    severity=Severity.ERROR,
    sources=(
        "notebooks.v2 discovery document, DataDisk.diskSizeGb",
        "chrisjmccormick.github.io, Colab GPUs, 2026-03-09",
    ),
    check=_check,
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
    good=examples(
        example_spec("gpu: L4\nrequires: {disk: 100GB}\n"),
        example_spec("gpu: L4\nrequires: {disk: 400GB}\n", data_disk="{size: 500GB}"),
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {disk: 100GB}\ntargets: '
        '{colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
)
