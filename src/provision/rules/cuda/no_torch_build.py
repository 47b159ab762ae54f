"""The requested torch was not built for the requested CUDA version.

## What it does

Looks up the CUDA versions that the allowed torch releases were built for.

## Why

Each torch release has wheels for three or four CUDA versions. For any other version, the PyTorch
index has no torch, or an older one.

## How to fix

Take a CUDA version that the torch release was built for, let the lock choose with `cuda: auto`, or
take a torch release that was built for it.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import cuda_of, flavour_of
from provision.facts.versions import format_versions, require_version
from provision.rules.admitted_releases import torch_releases, torch_rows
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)


def _check(context: LintContext) -> Findings:
    releases = torch_releases(context)
    rows = torch_rows(context, releases)
    if releases is None or not rows:
        return
    newest = rows[-1]
    built = sorted(map(cuda_of, newest.builds), key=require_version)
    cudas = {device.cuda_route: device.cuda for device in context.devices if device.is_nvidia}
    for route, cuda in cudas.items():
        flavour = flavour_of(cuda)
        sure = {row.builds.get(flavour) for row in rows}
        if cuda in ("auto", "none") or not sure.isdisjoint(("high", "medium")):
            continue
        others = [row.release for row in context.facts.torch if flavour in row.builds]
        severity = None
        if "low" in sure:
            severity = Severity.WARNING
        elif releases.includes_newer:
            severity = Severity.UNKNOWN
        yield RULE.diagnostic(
            f"{releases.requested} {'may have' if 'low' in sure else 'has'} no build for CUDA "
            f"{cuda}: {newest.release} was built for {', '.join(built)}",
            route,
            severity=severity,
            why="The PyTorch index for that CUDA version then holds no such torch."
            + (" Releases newer than the facts may be there." if releases.includes_newer else ""),
            help=f'write cuda: "{built[-1]}" or cuda: auto'
            + (f", or take torch {format_versions(others)}, built for {cuda}" if others else ""),
            related=related_at(releases.route, "torch asked for here"),
        )


RULE = Rule(
    id="CUD002",
    name="no-torch-build",
    severity=Severity.ERROR,
    sources=(
        "pytorch/test-infra generate_binary_build_matrix.py",
        "replicate/cog torch_compatibility.json",
        "torch wheels on PyPI",
    ),
    check=_check,
    bad=(
        Example('gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch==2.0.1]\n', '"12.8"'),
        Example('gpu: L4\ncuda: "11.7"\npython: "3.11"\npackages: ["torch>=2.2,<2.7"]\n', '"11.7"'),
        Example('gpu: L4\ncuda: "12.7"\npython: "3.11"\npackages: [torch]\n', '"12.7"'),
        Example('gpu: L4\ncuda: "12.9"\npython: "3.11"\npackages: [torch==2.13.0]\n', '"12.9"'),
        Example(
            'gpu: L4\ncuda: "11.8"\npython: "3.11"\npackages: [torch]\n',
            '"11.8"',
            ResolvedSet({"torch": "2.13.0"}, "3.11", "cu118"),
        ),
    ),
    good=examples(
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch==2.11.*]\n',
        'gpu: L4\ncuda: "11.8"\npython: "3.11"\npackages: [torch]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch==2.0.1]\n',
    ),
)
