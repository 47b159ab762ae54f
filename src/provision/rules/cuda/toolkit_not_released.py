"""The requested CUDA toolkit does not exist, or is not in the facts.

## What it does

Looks `cuda_toolkit` up among the released CUDA toolkits.

## Why

There is no CUDA 12.7, and no 11.9: the numbers jump. A toolkit newer than the facts may exist.

## How to fix

Take the nearest released version.
"""

from __future__ import annotations

from bisect import bisect

from provision.diagnostics import Severity
from provision.facts.versions import format_versions, require_version
from provision.rules.edits import replace_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.source_builds import major_version


def _check(context: LintContext) -> Findings:
    requested = context.spec.cuda_toolkit
    if requested is None or requested in context.facts.toolkits:
        return
    known = sorted(context.facts.toolkits, key=require_version)
    index = bisect(known, require_version(requested), key=require_version)
    if not 0 < index < len(known):
        yield RULE.diagnostic(
            f"the facts know no CUDA toolkit {requested}; they know {format_versions(known)}",
            ("cuda_toolkit",),
            severity=Severity.UNKNOWN,
            why="Whether it exists, and what it compiles for, cannot be told from here.",
            help="check the version with `nvcc --version` where it is installed",
        )
        return
    below, above = known[index - 1 : index + 1]
    nearest = next(
        (cuda for cuda in (above, below) if major_version(cuda) == major_version(requested)), None
    )
    yield RULE.diagnostic(
        f"there is no CUDA toolkit {requested}",
        ("cuda_toolkit",),
        why="NVIDIA released no such version.",
        help=f"write {below} or {above}",
        fix=replace_fix(f'write "{nearest}"', ("cuda_toolkit",), f'"{nearest}"')
        if nearest
        else None,
    )


RULE = Rule(
    id="CUD016",
    name="toolkit-not-released",
    severity=Severity.ERROR,
    sources=(
        "releases of nvidia-cuda-nvcc on PyPI",
        "NVIDIA runfile names, by spack-packages cuda/package.py",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.7"\npython: "3.12"\npackages: '
            "[torch==2.11.0, {name: our-kernels, build: true}]\n",
            '"12.7"',
            other_ids=("SPC009",),
        ),
        Example(
            'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.10"\npython: "3.12"\npackages: '
            "[torch==2.11.0, {name: our-kernels, build: true}]\n",
            '"12.10"',
            other_ids=("SPC009",),
        ),
    ),
    good=examples(
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
        "[torch==2.11.0, {name: our-kernels, build: true}]\n",
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.9"\npython: "3.12"\npackages: '
        "[torch==2.11.0, {name: our-kernels, build: true}]\n",
    ),
)
