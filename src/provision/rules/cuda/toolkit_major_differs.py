"""The CUDA compiler is of another major version than the CUDA of torch's wheels.

## What it does

Where packages are compiled against torch, compares nvcc (`cuda_toolkit`, or what Colab or the image
carries) with the CUDA version of the wheels.

## Why

`torch.utils.cpp_extension` compares both before it compiles: another major version ends in "The
detected CUDA version (12.8) mismatches the version that was used to compile PyTorch (13.0)".
Another minor version of the same major is only noted, and works.

## How to fix

Take a toolkit of the same major version, best of the same minor one.
"""

from __future__ import annotations

from provision.diagnostics import (
    Severity,
)
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.rules.source_builds import (
    major_version,
    nvcc_at,
    set_toolkit_fix,
    source_built_packages,
    torch_extensions,
    wheel_cuda_at,
)


def _check(context: LintContext) -> Findings:
    against_torch = torch_extensions(context)
    packages = against_torch or source_built_packages(context)
    reported = set()
    for target in context.targets if packages else ():
        cuda = wheel_cuda_at(context, target)
        nvcc = nvcc_at(context, target)
        if cuda is None or nvcc is None or major_version(cuda) == major_version(nvcc.cuda):
            continue
        if (nvcc.route, cuda) in reported:
            continue
        reported.add((nvcc.route, cuda))
        route, package = packages[0]
        fix = set_toolkit_fix(cuda)
        is_requested = nvcc.route == ("cuda_toolkit",)
        related = related_at(route, "compiled against torch")
        if target.gpu_settings.cuda != "auto":
            related = related_at(target.gpu_settings.cuda_route, "CUDA of the wheels") + related
        yield RULE.diagnostic(
            f"{package.key} is compiled with nvcc "
            f"{nvcc.cuda}{'' if is_requested else f' of {nvcc.provider}'}, and torch's wheels are "
            f"for CUDA {cuda}",
            nvcc.route,
            severity=None if against_torch and is_requested else Severity.WARNING,
            why="torch.utils.cpp_extension refuses another major version: the detected CUDA "
            "version mismatches the version that was used to compile PyTorch.",
            help=fix.title
            if is_requested
            else f"choose a cuda of major version {major_version(nvcc.cuda)}, or install a CUDA "
            f"{cuda} toolkit there yourself",
            related=related,
            fix=fix if is_requested else None,
        )


RULE = Rule(
    id="CUD013",
    name="toolkit-major-differs",
    severity=Severity.ERROR,
    sources=(
        "_check_cuda_version in torch/utils/cpp_extension.py of torch 2.13.0",
        "lm-sys/FastChat#1203",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: A100\ncuda: "13.0"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
            "[torch==2.11.0, {name: mamba-ssm, build: true}]\n",
            '"12.8"',
            other_ids=("SPC009",),
        ),
        Example(
            'gpu: A100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0, {name: '
            "mamba-ssm, build: true}]\n"
            'targets: {c: {kind: colab, runtime: "2026.07"}}\n',
            "colab",
            other_ids=(
                "IMG027",
                "IMG031",
            ),
        ),
        Example(
            'gpu: A100\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: [torch, {name: '
            "mamba-ssm, build: true}]\n",
            '"12.8"',
            ResolvedSet({"torch": "2.11.0"}, "3.12", "cu130"),
        ),
    ),
    good=examples(
        'gpu: A100\ncuda: "12.6"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
        "[torch==2.11.0, {name: mamba-ssm, build: true}]\n",
        'gpu: A100\ncuda: "13.0"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
        "[torch==2.11.0]\n",
    ),
)
