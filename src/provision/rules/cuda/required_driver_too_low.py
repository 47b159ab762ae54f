"""`requires.driver` admits drivers that are too old for the CUDA version or the GPU.

## What it does

Compares `requires.driver` with the minimum driver of the requested or resolved CUDA version, and
with the first branch that supports the GPU.

## Why

The check on the device would accept such a driver, but torch would not: "The NVIDIA driver on your
system is too old". The minimums are 450.80.02 for CUDA 11, 525.60.13 for 12 and 580.65.06 for 13.
WSL2 uses the Windows driver, whose minimums are 452.39, 528.33 and 580.

A bound that names only a branch, as in `>=580`, means any driver from that branch.

## How to fix

Require the minimum, or remove `driver`.
"""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Route, Severity
from provision.facts import cuda_of
from provision.facts.compatibility import is_driver_at_least
from provision.facts.versions import has_version_in_range, lower_bound, require_version
from provision.rules.edits import replace_fix, yaml_scalar
from provision.rules.machine_requirements import (
    VersionRequirement,
    driver_branches,
    find_version_requirement,
)
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)
from provision.rules.torch_builds import BuildQuery, build_queries


def _check(context: LintContext) -> Findings:
    findings: dict[Route, Diagnostic] = {}
    for query in build_queries(context):
        requirement = find_version_requirement(context, query.target, "driver")
        if query.target.driver is not None or requirement is None or not query.flavour:
            continue
        finding = _finding(context, query, requirement, cuda_of(query.flavour))
        if finding:
            findings.setdefault(requirement.route, finding)
    yield from findings.values()


def _finding(
    context: LintContext, query: BuildQuery, requirement: VersionRequirement, cuda: str
) -> Diagnostic | None:
    toolkit = context.facts.toolkits.get(cuda)
    specifiers = requirement.specifiers
    known = driver_branches(context, query.card)
    if toolkit is None or not known.admits(specifiers):
        return None
    floor = toolkit.floor_linux
    needed_by = f"CUDA {toolkit.cuda}"
    note = f" (WSL2 uses the Windows driver: {toolkit.floor_windows})"
    if known.first and require_version(known.first) > require_version(floor):
        floor = known.first
        needed_by = query.card.name
        note = ""
    low = lower_bound(specifiers)
    last = known.first_unsupported
    is_possible = has_version_in_range(specifiers, floor, last)
    if is_possible and (low is None or is_driver_at_least(low, floor)):
        return None
    fix = replace_fix(f'set `driver: ">={floor}"`', requirement.route, yaml_scalar(f">={floor}"))
    is_fixable = not last or require_version(floor) < require_version(last)
    return RULE.diagnostic(
        f"`requires.driver: {requirement.text}` allows {'' if is_possible else 'only '}drivers "
        f"older than {floor}, the minimum for {needed_by}",
        requirement.route,
        severity=Severity.WARNING if is_possible else None,
        evidence=toolkit.evidence,
        why="With an older driver, torch finds no GPU or fails with `The NVIDIA driver on your "
        "system is too old`.",
        help=fix.title + note,
        related=related_at(query.cuda_route, f"CUDA {toolkit.cuda} set here")
        if query.target.gpu_settings.cuda != "auto"
        else (),
        fix=fix if is_fixable else None,
    )


RULE = Rule(
    id="CUD007",
    name="required-driver-too-low",
    severity=Severity.ERROR,
    sources=("NVIDIA, CUDA Compatibility, minor version compatibility",),
    check=_check,
    bad=examples(
        'gpu: L4\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: «">=535"»}\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: «">=525.60.11"»}\n',
        'gpu: L4\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: «"==575.*"»}\n',
        'gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: «">=535"»}\n',
        example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\nrequires: {driver: «">=570"»}\n',
            ResolvedSet({"torch": "2.15.0"}, "3.12", "cu132"),
        ),
    ),
    good=examples(
        'gpu: L4\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: ">=580"}\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: ">=525.60.13"}\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.12"\npackages: [torch==2.11.0]\n'
        'requires: {driver: ">=580,<600"}\n',
    ),
)
