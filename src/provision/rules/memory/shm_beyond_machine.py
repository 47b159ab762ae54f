"""More shared memory is required than the machine gives.

## What it does

Compares `requires.shm` with /dev/shm: half of the RAM on a Workbench machine, and what was seen on
a Colab machine of standard shape.

## Why

DataLoader workers hand batches over through /dev/shm. When it is full they die with a bus error.

## How to fix

Require what the workers need, take a machine with more RAM, or let workers share through files:
`torch.multiprocessing.set_sharing_strategy("file_system")`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import format_size, shm_capacity, unmet_sizes
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_if_written


def _check(context: LintContext) -> Findings:
    for _, required, shm in unmet_sizes(context, "shm", shm_capacity):
        available = format_size(shm.bytes)
        yield RULE.diagnostic(
            f"shm: {required.text} is required, and /dev/shm of {shm.provider} has {available}",
            required.route,
            evidence=shm.evidence,
            why="The verification would fail on the device; there, workers whose batches do "
            "not fit die with a bus error.",
            help=f"require at most {available}, or take a machine with more RAM",
            related=related_if_written(context, shm.route, "machine asked for here"),
        )


RULE = Rule(
    id="MEM005",
    name="shm-beyond-machine",
    severity=Severity.ERROR,
    sources=("Linux kernel documentation, filesystems/tmpfs", "googlecolab/colabtools#4254"),
    check=_check,
    bad=(
        Example(example_spec("gpu: L4\nrequires: {shm: 17GiB}\n"), "17GiB"),
        Example(
            'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {shm: 8GiB}\ntargets: '
            '{colab: {kind: colab, runtime: "2026.07"}}\n',
            "8GiB",
        ),
    ),
    good=examples(
        example_spec("gpu: L4\nrequires: {shm: 16GiB}\n"),
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {shm: 5GiB}\ntargets: '
        '{colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
)
