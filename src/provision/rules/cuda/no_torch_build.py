"""The requested torch was not built for the requested CUDA version.

## What it does

Looks up the CUDA versions that the admitted torch releases were built for.

## Why

Each torch release has wheels for three or four CUDA versions. For any other version, the PyTorch
index has no torch, or an older one.

## How to fix

Use a CUDA version that the torch release was built for, let the lock choose with `cuda: auto`, or
use a torch release that was built for the CUDA version.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import cuda_of, flavour_of
from provision.facts.versions import format_versions, require_version
from provision.rules.admitted_releases import torch_releases, torch_rows
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples


def _check(context: LintContext) -> Findings:
    releases = torch_releases(context)
    rows = torch_rows(context, releases)
    if releases is None or not rows:
        return
    newest = rows[-1]
    cudas = {device.cuda_route: device.cuda for device in context.devices if device.is_nvidia}
    for route, cuda in cudas.items():
        if cuda in ("auto", "none"):
            continue
        flavour = flavour_of(cuda)
        confidence = {row.builds.get(flavour) for row in rows}
        if not confidence.isdisjoint(("high", "medium")):
            continue
        built = sorted(map(cuda_of, newest.builds), key=require_version)
        verb, severity = "has", None
        why = "The PyTorch index for this CUDA version does not contain a matching build."
        if releases.includes_newer:
            severity = Severity.UNKNOWN
            why += " Releases newer than the facts may have one."
        if "low" in confidence:
            verb, severity = "may have", Severity.WARNING
        help_text = f'set `cuda: "{built[-1]}"` or `cuda: auto`'
        others = [row.release for row in context.facts.torch if flavour in row.builds]
        if others:
            versions = format_versions(others)
            help_text += f", or use a torch release with CUDA {cuda} builds: {versions}"
        yield RULE.diagnostic(
            f"{releases.requested} {verb} no build for CUDA {cuda}; torch {newest.release} was "
            f"built for CUDA {', '.join(built)}",
            route,
            severity=severity,
            why=why,
            help=help_text,
            related=releases.related,
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
    bad=examples(
        'gpu: L4\ncuda: «"12.8"»\npython: "3.11"\npackages: [torch==2.0.1]\n',
        'gpu: L4\ncuda: «"11.7"»\npython: "3.11"\npackages: ["torch>=2.2,<2.7"]\n',
        'gpu: L4\ncuda: «"12.7"»\npython: "3.11"\npackages: [torch]\n',
        'gpu: L4\ncuda: «"12.9"»\npython: "3.11"\npackages: [torch==2.13.0]\n',
        example(
            'gpu: L4\ncuda: «"11.8"»\npython: "3.11"\npackages: [torch]\n',
            ResolvedSet({"torch": "2.13.0"}, "3.11", "cu118"),
        ),
    ),
    good=examples(
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch==2.11.*]\n',
        'gpu: L4\ncuda: "11.8"\npython: "3.11"\npackages: [torch]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch==2.0.1]\n',
    ),
)
