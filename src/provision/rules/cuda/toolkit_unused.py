"""A CUDA toolkit is requested, but nothing is built.

## What it does

If `cuda_toolkit` is set, looks for a package with `build: true`, or one that compiles parts of
itself when used (deepspeed).

## Why

Wheels include their own CUDA runtime and do not need nvcc. The CUDA version that `nvidia-smi` shows
is the driver's, that of `cuda` is the wheels', and that of `cuda_toolkit` is nvcc's: the three may
differ, and without a build the last does not matter. A toolkit takes gigabytes of disk space.

## How to fix

Remove `cuda_toolkit`, or mark the packages to build with `build: true`.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.source_builds import source_built_packages


def _check(context: LintContext) -> Findings:
    if context.spec.cuda_toolkit is not None and not source_built_packages(context):
        yield RULE.diagnostic(
            f"`cuda_toolkit: {context.spec.cuda_toolkit}` is set, but no package is compiled",
            ("cuda_toolkit",),
            at=RoutePart.KEY,
            why="Wheels include the CUDA libraries they need, so nvcc would not be used.",
            help="remove `cuda_toolkit`, or list the package to be compiled as "
            "`{name: ..., build: true}`",
        )


RULE = Rule(
    id="CUD012",
    name="toolkit-unused",
    severity=Severity.INFO,
    sources=(
        "NVIDIA, CUDA Compatibility",
        "Requires-Dist of the torch wheels: nvidia-cuda-runtime and its siblings",
    ),
    check=_check,
    bad=examples(
        example(
            'gpu: L4\ncuda: "12.8"\n«cuda_toolkit»: "12.8"\npython: "3.12"\n'
            "packages: [torch==2.11.0]\n",
            other_ids=("SPC009",),
        ),
        example(
            'gpu: L4\ncuda: "12.8"\n«cuda_toolkit»: "13.0"\npython: "3.12"\n'
            'packages: [torch==2.11.0, "transformers[torch]"]\n',
            other_ids=("SPC009",),
        ),
    ),
    good=examples(
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\n'
        "packages: [torch==2.11.0, {name: our-kernels, build: true}]\n",
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\n'
        "packages: [torch==2.11.0, {name: deepspeed, build: true}]\n",
    ),
)
