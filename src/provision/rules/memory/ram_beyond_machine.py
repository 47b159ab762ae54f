"""More RAM is required than the machine has.

## What it does

Compares `requires.ram` with the RAM of the machine type, of the largest machine type that `auto`
can take with those cards, or of the Colab machine.

## Why

The verification compares the same numbers on the device, and would fail there.

## How to fix

Take the machine type or the shape that is named, or require what the work needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Fix, Severity
from provision.facts.machines import find_machines
from provision.kinds import ColabTarget, WorkbenchTarget
from provision.kinds.colab import find_shape
from provision.rules.memory.capacity import (
    GIB,
    RequiredSize,
    format_size,
    ram_capacity,
    required_size,
)
from provision.rules.rule import Example, LintContext, Rule, related_if_written
from provision.rules.workbench_instances import example_spec, set_field_fix
from provision.target_facts import TargetFacts

USABLE_RAM_SHARE = 0.95
"""How much of what is required will do, as check H05 has it on the device (RAM_SHARE of the probe;
a test compares the two).
"""


def check(case: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each requirement that a machine does not meet."""
    for site in case.targets:
        need, room = required_size(case, site, "ram"), None
        if need is not None:
            room = ram_capacity(case, site)
        if need is None or room is None or room.bytes >= need.bytes * USABLE_RAM_SHARE:
            continue
        words, fix = _enough(case, site, need)
        yield RULE.diagnostic(
            f"ram: {need.text} is required, and {room.provider} has {format_size(room.bytes)}",
            need.route,
            severity=room.at_most(Severity.ERROR),
            why="The verification would fail on the device.",
            way_out=f"{words}require at most {format_size(room.bytes)}",
            related=related_if_written(case, room.route, "machine asked for here"),
            fix=fix,
        )


def _enough(case: LintContext, site: TargetFacts, need: RequiredSize) -> tuple[str, Fix | None]:
    """Return the machine that has enough, in words, and the fix that takes it."""
    if isinstance(site.target, ColabTarget):
        high = find_shape(site.gpu_settings.gpu, "high", case.facts)
        if (
            site.target.shape == "high"
            or high is None
            or high.ram_gib is None
            or high.ram_gib * GIB < need.bytes * USABLE_RAM_SHARE
        ):
            return "", None
        return f"write shape: high, which has {high.ram_gib:g} GiB, or ", set_field_fix(
            case, (*site.route, "shape"), "high"
        )
    if not isinstance(site.target, WorkbenchTarget):
        return "", None
    if site.card is not None:
        machines = find_machines(
            case.facts,
            site.card,
            site.gpu_settings.gpu.count,
            reserved=site.target.reservation is not None,
        )
    else:
        machines = tuple(
            machine
            for machine in case.facts.machines.values()
            if not machine.gpus and machine.family == _family(site.target)
        )
    machine = min(
        (one for one in machines if one.ram_gb * GIB >= need.bytes * USABLE_RAM_SHARE),
        key=lambda one: (one.ram_gb, one.vcpus),
        default=None,
    )
    if machine is None:
        return "", None
    return f"take {machine.name} with {machine.ram_gb:g} GiB, or ", set_field_fix(
        case, (*site.route, "machine_type"), machine.name
    )


def _family(target: WorkbenchTarget) -> str:
    return target.machine_type.split("-", 1)[0]


RULE = Rule(
    id="MEM003",
    name="ram-beyond-machine",
    severity=Severity.ERROR,
    summary="More RAM is required than the machine has.",
    sources=(
        "Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",
        "googlecolab/google-colab-cli#105",
    ),
    page=__doc__,
    check=check,
    bad=(
        Example(example_spec("gpu: L4\nrequires: {ram: 64GiB}\n"), "64GiB"),
        Example(example_spec("gpu: L4\nrequires: {ram: 300GiB}\n", machine_type="auto"), "300GiB"),
        Example(
            'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {ram: 16GiB}\ntargets: '
            '{colab: {kind: colab, runtime: "2026.07"}}\n',
            "16GiB",
        ),
    ),
    good=(
        Example(example_spec("gpu: L4\nrequires: {ram: 32GiB}\n")),
        Example(example_spec("gpu: L4\nrequires: {ram: 128GiB}\n", machine_type="auto")),
        Example(
            'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {ram: 16GiB}\ntargets: '
            '{colab: {kind: colab, runtime: "2026.07", shape: high}}\n'
        ),
        Example('gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {ram: 900GiB}\n'),
    ),
)
