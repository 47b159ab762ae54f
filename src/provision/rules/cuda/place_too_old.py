"""The driver, or the C library, that a place brings is older than the torch build needs.

## What it does

Where the driver is known (from an image's name, or Colab's machines), compares it with the floor of
every possible torch build that has code for the card; where the operating system is known, its C
library with the one that the wheels ask for (manylinux_2_28 since torch 2.7).

## Why

Programs of a CUDA major version run on drivers from its first release on: 450.80.02 for CUDA 11,
525.60.13 for 12, 580.65.06 for 13. On an older driver torch reports "The NVIDIA driver on your
system is too old", and `torch.cuda.is_available()` is false. This does not cover PTX, which needs a
driver that is as new as the build's CUDA; with an older one it fails with "the provided PTX was
compiled with an unsupported toolchain".

Three CUDA versions may differ without harm: that of the wheels (`cuda`), the newest that the driver
brings (which `nvidia-smi` shows), and that of nvcc (`cuda_toolkit`), which matters only for what is
built from source. A driver that shows CUDA 13.0 runs wheels for 12.6.

## How to fix

Take a CUDA version that the driver runs, or an image with a newer driver.
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
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
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
        needs = "needs"
        why = (
            "the NVIDIA driver on your system is too old. torch.cuda.is_available() would be false."
        )
        if obstacle.kind is IncompatibilityKind.PTX_NEEDS_DRIVER:
            needs = f"has only PTX for {query.card.name}, which needs"
            why = "the provided PTX was compiled with an unsupported toolchain."
        image = describe_image_with_driver(context, query.target, obstacle.required)
        yield RULE.diagnostic(
            f"torch {option.release.release} for CUDA {option.cuda} {needs} driver "
            f"{obstacle.required}, and the driver of {driver.provider} is {driver.value}",
            query.cuda_route,
            severity=severity,
            why=f"torch would say: {why}",
            help=describe_alternatives(
                context, query, image or "take a machine with a newer driver"
            ),
            related=related_at(driver.route, f"driver {driver.value} comes from here")
            + related_at(query.releases.route, "torch comes from here"),
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
        fits = [row.release for row in context.facts.torch if _runs_with(row, glibc.value)]
        yield RULE.diagnostic(
            f"{releases.requested} needs glibc {rows[-1].glibc}, and that of "
            f"{glibc.provider} is {glibc.value}",
            glibc.route,
            evidence=glibc.evidence,
            why="The installer finds no wheel that runs on that system.",
            help="take a newer image" + (f", or torch {format_versions(fits)}" if fits else ""),
            related=related_at(releases.route, "torch comes from here"),
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
    bad=(
        Example(
            'gpu: T4\ncuda: "13.0"\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n'
            f"  workbench: {{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2204-nvidia-570}}\n",
            '"13.0"',
            other_ids=("IMG003", "IMG004"),
        ),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntargets:\n  workbench: '
            f"{{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2404-nvidia-570}}\n",
            "L4",
            ResolvedSet({"torch": "2.15.0"}, "3.12", "cu132"),
            ("IMG004",),
        ),
    ),
    good=examples(
        'gpu: T4\ncuda: "12.8"\npython: "3.10"\npackages: [torch==2.11.0]\ntargets:\n'
        f"  workbench: {{{EXAMPLE_TARGET}, image: pytorch-2-7-cu128-ubuntu-2204-nvidia-570}}\n",
        'gpu: T4\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\ntargets: '
        '{colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
)
