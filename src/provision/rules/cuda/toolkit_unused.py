"""A CUDA toolkit is requested, and nothing is built.

## What it does

Looks whether any package has `build: true`, or compiles parts of itself when used (deepspeed),
where `cuda_toolkit` is given.

## Why

Wheels carry their own CUDA runtime and need no nvcc. The CUDA version that `nvidia-smi` shows is
the driver's, that of `cuda` is the wheels', and that of `cuda_toolkit` is nvcc's: the three may
differ, and without a build the last does not matter. A toolkit takes gigabytes of disk.

## How to fix

Leave `cuda_toolkit` out, or mark what is to be built with `build: true`.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.source_builds import source_built_packages


def _check(context: LintContext) -> Findings:
    if context.spec.cuda_toolkit is not None and not source_built_packages(context):
        yield RULE.diagnostic(
            f"cuda_toolkit: {context.spec.cuda_toolkit} is asked for, and no package is built "
            "from source",
            ("cuda_toolkit",),
            at=RoutePart.KEY,
            why="Wheels bring the CUDA that they need; nvcc would lie there for nothing.",
            help="leave cuda_toolkit out, or write {name: ..., build: true} for what is built",
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
    bad=(
        Example(
            'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
            "[torch==2.11.0]\n",
            "cuda_toolkit",
            other_ids=("SPC009",),
        ),
        Example(
            'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "13.0"\npython: "3.12"\npackages: '
            '[torch==2.11.0, "transformers[torch]"]\n',
            "cuda_toolkit",
            other_ids=("SPC009",),
        ),
    ),
    good=examples(
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
        "[torch==2.11.0, {name: our-kernels, build: true}]\n",
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
        "[torch==2.11.0, {name: deepspeed, build: true}]\n",
    ),
)
