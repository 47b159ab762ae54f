"""The requested CUDA toolkit does not exist, or is not in the facts.

## What it does

Looks up `cuda_toolkit` among the released CUDA toolkits.

## Why

The version numbers have gaps: there is no CUDA 12.7, and no 11.9. A toolkit newer than the facts
may exist.

## How to fix

Use the nearest released version.
"""

from __future__ import annotations

from bisect import bisect

from provision.diagnostics import Severity
from provision.facts.versions import format_versions, require_version
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.source_builds import major_version, set_toolkit_fix


def _check(context: LintContext) -> Findings:
    requested = context.spec.cuda_toolkit
    if requested is None or requested in context.facts.toolkits:
        return
    known = sorted(context.facts.toolkits, key=require_version)
    index = bisect(known, require_version(requested), key=require_version)
    if not 0 < index < len(known):
        yield RULE.diagnostic(
            f"unknown CUDA toolkit {requested}; the known versions are {format_versions(known)}",
            ("cuda_toolkit",),
            severity=Severity.UNKNOWN,
            why="provision has no data on whether it exists, or which GPUs it supports.",
            help="check the version with `nvcc --version` on a machine that has it",
        )
        return
    below, above = known[index - 1 : index + 1]
    major = major_version(requested)
    nearest = next((cuda for cuda in (above, below) if major_version(cuda) == major), None)
    yield RULE.diagnostic(
        f"CUDA toolkit {requested} does not exist",
        ("cuda_toolkit",),
        why="NVIDIA did not release this version.",
        help=f"use {below} or {above}",
        fix=set_toolkit_fix(nearest) if nearest else None,
    )


RULE = Rule(
    id="CUD016",
    name="toolkit-not-released",
    severity=Severity.ERROR,
    sources=(
        "releases of nvidia-cuda-nvcc on PyPI",
        "NVIDIA runfile names in spack-packages cuda/package.py",
    ),
    check=_check,
    bad=examples(
        example(
            'gpu: L4\ncuda: "12.8"\ncuda_toolkit: «"12.7"»\npython: "3.12"\n'
            "packages: [torch==2.11.0, {name: our-kernels, build: true}]\n",
            other_ids=("SPC009",),
        ),
        example(
            'gpu: L4\ncuda: "12.8"\ncuda_toolkit: «"12.10"»\npython: "3.12"\n'
            "packages: [torch==2.11.0, {name: our-kernels, build: true}]\n",
            other_ids=("SPC009",),
        ),
    ),
    good=examples(
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\n'
        "packages: [torch==2.11.0, {name: our-kernels, build: true}]\n",
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.9"\npython: "3.12"\n'
        "packages: [torch==2.11.0, {name: our-kernels, build: true}]\n",
    ),
)
