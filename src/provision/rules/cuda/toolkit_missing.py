"""A package is compiled for CUDA, but no nvcc is known on the target.

## What it does

If a package that is published only as source code and needs nvcc (flash-attn, mamba-ssm) has
`build: true`, looks for a CUDA toolkit: `cuda_toolkit`, that of Colab, or that of the image.

## Why

The wheels of torch include the CUDA runtime but no compiler. Without a toolkit the build fails with
"CUDA_HOME environment variable is not set".

## How to fix

Install a CUDA toolkit with the same major version as `cuda` on the device, get the package from an
index that has wheels for it, or use a release that has a wheel for this torch.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.package_lines import package_lines
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.source_builds import nvcc_at, wheel_cuda_at


def _check(context: LintContext) -> Findings:
    targets = [
        target
        for target in context.targets
        if target.gpu_settings.is_nvidia and nvcc_at(context, target) is None
    ]
    if not targets:
        return
    cudas = (wheel_cuda_at(context, target) for target in targets)
    cuda = next((cuda for cuda in cudas if cuda in context.facts.toolkits), None)
    toolkit = f"CUDA toolkit {cuda}" if cuda else "a CUDA toolkit of torch's major CUDA version"
    names = " and ".join(f"`{target.name}`" for target in targets)
    where = f"target {names}" if len(targets) == 1 else f"targets {names}"
    for route, package in package_lines(context):
        row = context.facts.source_only.get(package.key)
        if not package.is_built or row is None or "nvcc" not in row.needs:
            continue
        yield RULE.diagnostic(
            f"{package.key} is built with nvcc, which is not known to be installed on {where}",
            route,
            why=(
                "The torch wheels do not include a compiler. Without one, the build fails with: "
                "CUDA_HOME environment variable is not set."
            ),
            help=(
                f"install {toolkit} on the target, or get {package.key} from an index that has "
                "wheels for it"
            ),
        )


RULE = Rule(
    id="CUD011",
    name="toolkit-missing",
    severity=Severity.WARNING,
    sources=(
        "torch/utils/cpp_extension.py of torch 2.13.0 (CUDA_HOME)",
        "Dao-AILab/flash-attention setup.py",
        "file lists of the packages on PyPI",
    ),
    check=_check,
    bad=examples(
        'gpu: A100\ncuda: "12.8"\npython: "3.12"\n'
        "packages: [ninja, packaging, psutil, setuptools, wheel, "
        "torch==2.11.0, «{name: mamba-ssm, build: true}»]\n",
        'gpu: L4\npython: "3.12"\npackages: [ninja, packaging, psutil, setuptools, wheel, '
        "torch, «{name: causal-conv1d, build: true}»]\n",
    ),
    good=examples(
        'gpu: A100\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\n'
        "packages: [ninja, packaging, psutil, setuptools, wheel, "
        "torch==2.11.0, {name: mamba-ssm, build: true}]\n",
        'gpu: L4\ncuda: "12.8"\npython: "3.12"\n'
        "packages: [ninja, packaging, psutil, setuptools, wheel, "
        "torch==2.11.0, {name: mamba-ssm, build: true}]\n"
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        'gpu: none\npython: "3.12"\npackages: [ninja, packaging, psutil, setuptools, wheel, '
        "torch, {name: mamba-ssm, build: true}]\n",
    ),
)
