"""More shared memory is required than the machine has.

## What it does

Compares `requires.shm` with the size of /dev/shm: half of the RAM on a Workbench machine, and the
measured size on a Colab machine of standard shape.

## Why

DataLoader workers pass batches through /dev/shm. When it is full they die with a bus error.

## How to fix

Require what the workers need, use a machine with more RAM, or let workers share through files:
`torch.multiprocessing.set_sharing_strategy("file_system")`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import format_size, unmet_sizes
from provision.rules.rule import Findings, LintContext, Rule, examples, related_if_written


def _check(context: LintContext) -> Findings:
    for _, required, shm in unmet_sizes(context, "shm"):
        available = format_size(shm.bytes)
        yield RULE.diagnostic(
            f"{required.text} of shared memory is required, but /dev/shm on {shm.provider} has "
            f"{available}",
            required.route,
            evidence=shm.evidence,
            why="Verification would fail on the device, and DataLoader workers would die with "
            "a bus error if their batches do not fit.",
            help=f"require at most {available}, or use a machine with more RAM",
            related=related_if_written(context, shm.route, "machine requested here"),
        )


RULE = Rule(
    id="MEM005",
    name="shm-beyond-machine",
    severity=Severity.ERROR,
    sources=("Linux kernel documentation, filesystems/tmpfs", "googlecolab/colabtools#4254"),
    check=_check,
    bad=examples(
        example_spec("gpu: L4\nrequires: {shm: «17GiB»}\n"),
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {shm: «8GiB»}\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
    good=examples(
        example_spec("gpu: L4\nrequires: {shm: 16GiB}\n"),
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {shm: 5GiB}\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
)
