"""More free disk space is required than the disk has.

## What it does

Compares `requires.disk` with the data disk of a Workbench instance (100 GB by default), and with
the disk of a Colab machine.

## Why

The verification checks the free disk space on the device, and would fail.

## How to fix

Use a larger data disk, or require less.
"""

from __future__ import annotations

import math

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import unmet_sizes
from provision.rules.rule import Findings, LintContext, Rule, examples, related_if_written


def _check(context: LintContext) -> Findings:
    for target, required, disk in unmet_sizes(context, "disk"):
        disk_gb = f"{disk.bytes / 10**9:.0f}"
        help_text = f"require less than {disk_gb} GB"
        if isinstance(target.target, WorkbenchTarget):
            size = math.ceil(required.bytes / 10**10) * 10
            help_text = f"set `data_disk: {{size: {size}GB}}`, or {help_text}"
        yield RULE.diagnostic(
            f"{required.text} of free disk space is required, but {disk.provider} has {disk_gb} GB",
            required.route,
            evidence=disk.evidence,
            why="Verification on that machine would fail.",
            help=help_text,
            related=related_if_written(context, disk.route, "determines this target's disk size"),
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
    bad=examples(
        example_spec("gpu: L4\nrequires: {disk: «101GB»}\n"),
        example_spec("gpu: L4\nrequires: {disk: «600GB»}\n", data_disk="{size: 500GB}"),
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {disk: «200GB»}\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
    good=examples(
        example_spec("gpu: L4\nrequires: {disk: 100GB}\n"),
        example_spec("gpu: L4\nrequires: {disk: 400GB}\n", data_disk="{size: 500GB}"),
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {disk: 100GB}\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
)
