"""More RAM is required than the machine has.

## What it does

Compares `requires.ram` with the RAM of the machine type, of the largest machine type that `auto`
can choose for the GPUs, or of the Colab machine. Targets of Workbench and Colab Enterprise have a
machine type.

## Why

The verification checks the RAM on the device, and would fail.

## How to fix

Use the machine type or the shape that the finding names, or require less.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import (
    GIB,
    format_size,
    unmet_sizes,
)
from provision.rules.rule import Findings, LintContext, Rule, examples, related_if_written

USABLE_RAM_SHARE = 0.95
"""Share of the required RAM that is enough, as in check H05 (a test compares the two)."""


def _check(context: LintContext) -> Findings:
    for target, required, ram in unmet_sizes(context, "ram", usable_share=USABLE_RAM_SHARE):
        help_text = f"require at most {format_size(ram.bytes)}"
        least = required.bytes * USABLE_RAM_SHARE / GIB
        larger = target.kind.machine_with_ram(least, target, context.facts)
        fix = None
        if larger:
            fix = set_field_fix(context, (*target.route, larger.field), larger.value)
            help_text = (
                f"set `{larger.field}: {larger.value}`, which has {larger.ram_gib:g} GiB, or "
                f"{help_text}"
            )
        yield RULE.diagnostic(
            f"{required.text} of RAM is required, but {ram.provider} has {format_size(ram.bytes)}",
            required.route,
            evidence=ram.evidence,
            why="Verification on that machine would fail.",
            help=help_text,
            related=related_if_written(context, ram.route, "machine requested here"),
            fix=fix,
        )


RULE = Rule(
    id="MEM003",
    name="ram-beyond-machine",
    severity=Severity.ERROR,
    sources=(
        "Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",
        "googlecolab/google-colab-cli#105",
    ),
    check=_check,
    bad=examples(
        example_spec("gpu: L4\nrequires: {ram: «64GiB»}\n"),
        example_spec("gpu: L4\nrequires: {ram: «300GiB»}\n", machine_type="auto"),
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {ram: «16GiB»}\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        'gpu: none\npython: "3.12"\npackages: []\nrequires: {ram: «64GiB»}\ntargets:\n  t: {kind: '
        "colab-enterprise, project: my-project, region: us-central1, machine_type: e2-standard-8}"
        "\n",
    ),
    good=examples(
        example_spec("gpu: L4\nrequires: {ram: 32GiB}\n"),
        example_spec("gpu: L4\nrequires: {ram: 128GiB}\n", machine_type="auto"),
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {ram: 16GiB}\n'
        'targets: {colab: {kind: colab, runtime: "2026.07", shape: high}}\n',
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {ram: 900GiB}\n',
    ),
)
