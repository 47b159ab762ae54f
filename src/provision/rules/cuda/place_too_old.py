"""The driver or the C library of a target is older than the torch build requires.

## What it does

If the driver is known (from an image's name, or Colab's machines), compares it with the minimum of
every possible torch build that has code for the GPU. If the operating system is known, compares its
C library with that of the wheels (manylinux_2_28 since torch 2.7).

## Why

Programs for a CUDA major version run on drivers since its first release: 450.80.02 for CUDA 11,
525.60.13 for 12, 580.65.06 for 13. On an older driver torch reports "The NVIDIA driver on your
system is too old", and `torch.cuda.is_available()` is false. This does not apply to PTX, which
requires a driver as new as the CUDA version of the build; an older one fails with "the provided PTX
was compiled with an unsupported toolchain".

Three CUDA versions may differ without harm: that of the wheels (`cuda`), the newest that the driver
supports (which `nvidia-smi` shows), and that of nvcc (`cuda_toolkit`), which matters only for
packages that are built from source. A driver that shows CUDA 13.0 runs wheels for 12.6.

## How to fix

Use a CUDA version that the driver supports, or an image with a newer driver.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import TorchRelease
from provision.facts.compatibility import Incompatibility, IncompatibilityKind
from provision.facts.versions import format_versions, require_version
from provision.kinds.base import ProvidedVersion
from provision.rules.admitted_releases import torch_rows
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.machine_requirements import describe_image_with_driver
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)
from provision.rules.torch_builds import (
    BuildOption,
    BuildQuery,
    build_queries,
    can_run,
    describe_alternatives,
    possible_builds,
    possible_torch_releases,
)

_OLD = (IncompatibilityKind.DRIVER_TOO_OLD, IncompatibilityKind.PTX_NEEDS_DRIVER)


def _check(context: LintContext) -> Findings:
    yield from _glibc_findings(context)
    for query in build_queries(context):
        driver = query.target.driver
        newest = driver and _newest_blocked_build(context, query, driver)
        if driver is None or newest is None:
            continue
        option, obstacle = newest
        severity = Severity.ERROR
        for evidence in (driver.evidence, *obstacle.evidence):
            severity = evidence.cap_severity(severity)
        requires = "requires"
        why = (
            "torch reports `The NVIDIA driver on your system is too old`, and "
            "torch.cuda.is_available() returns False."
        )
        if obstacle.kind is IncompatibilityKind.PTX_NEEDS_DRIVER:
            requires = f"has only PTX for {query.card.name}, which requires"
            why = "torch fails with: the provided PTX was compiled with an unsupported toolchain."
        image = describe_image_with_driver(context, query.target, obstacle.required)
        yield RULE.diagnostic(
            f"torch {option.release.release} for CUDA {option.cuda} {requires} driver "
            f"{obstacle.required} or newer, but {driver.provider} has driver {driver.value}",
            query.cuda_route,
            severity=severity,
            why=why,
            help=describe_alternatives(
                context, query, image or "use a machine with a newer driver"
            ),
            related=related_at(driver.route, f"has driver {driver.value}") + query.releases.related,
        )


def _glibc_findings(context: LintContext) -> Findings:
    releases = possible_torch_releases(context)
    rows = torch_rows(context, releases)
    if releases is None or releases.includes_newer or not rows:
        return
    for target in context.targets:
        glibc = target.glibc
        if glibc is None or any(_runs_with(row, glibc.value) for row in rows):
            continue
        fitting = [row.release for row in context.facts.torch if _runs_with(row, glibc.value)]
        yield RULE.diagnostic(
            f"{releases.requested} requires glibc {rows[-1].glibc} or newer, but "
            f"{glibc.provider} has {glibc.value}",
            glibc.route,
            evidence=glibc.evidence,
            why="The installer finds no wheel that runs on this system.",
            help="use a newer image"
            + (f", or torch {format_versions(fitting)}" if fitting else ""),
            related=releases.related,
        )


def _runs_with(row: TorchRelease, glibc: str) -> bool:
    """Return whether the wheel of a release runs with a C library."""
    return require_version(row.glibc) <= require_version(glibc)


def _newest_blocked_build(
    context: LintContext, query: BuildQuery, driver: ProvidedVersion
) -> tuple[BuildOption, Incompatibility] | None:
    """Return the newest build that fails only because of an old driver; None if some build runs."""
    newest = None
    for option in possible_builds(context, query):
        if can_run(context, query, option) is not False:
            return None
        obstacles = context.facts.incompatibilities(driver.value, option.build, query.card)
        if newest is None and all(obstacle.kind in _OLD for obstacle in obstacles):
            newest = option, obstacles[0]
    return newest


RULE = Rule(
    id="CUD004",
    name="place-too-old",
    severity=Severity.ERROR,
    sources=(
        "NVIDIA, CUDA Compatibility, minor version compatibility",
        "PEP 600 and the wheel tags of torch",
        "pytorch/pytorch#162531",
    ),
    check=_check,
    bad=examples(
        example(
            'gpu: T4\ncuda: «"13.0"»\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n'
            f"  workbench: {{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2204-nvidia-570}}\n",
            other_ids=("IMG003", "IMG004"),
        ),
        example(
            'gpu: «L4»\npython: "3.12"\npackages: [torch]\ntargets:\n  workbench: '
            f"{{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2404-nvidia-570}}\n",
            ResolvedSet({"torch": "2.15.0"}, "3.12", "cu132"),
            ("IMG004",),
        ),
    ),
    good=examples(
        'gpu: T4\ncuda: "12.8"\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n'
        f"  workbench: {{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2204-nvidia-570}}\n",
        'gpu: T4\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
)
