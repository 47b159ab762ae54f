"""The major version of the CUDA compiler differs from that of torch's wheels.

## What it does

If packages are compiled against torch, compares nvcc (`cuda_toolkit`, or that of Colab or the
image) with the CUDA version of the wheels.

## Why

`torch.utils.cpp_extension` compares both before it compiles: a different major version fails with
"The detected CUDA version (12.8) mismatches the version that was used to compile PyTorch (13.0)". A
different minor version of the same major only gives a note, and works. flash-attn downloads a
prebuilt wheel if one fits torch and Python, and then compiles nothing.

## How to fix

Use a toolkit with the same major version, ideally also the same minor version.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.flash_attention import find_flash_attention_build
from provision.rules.package_requirements import requested_package
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
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
from provision.spec import Package


def _check(context: LintContext) -> Findings:
    built = [
        (route, package)
        for route, package in source_built_packages(context)
        if not _is_downloaded(context, package)
    ]
    against_torch = [line for line in torch_extensions(context) if line in built]
    packages = against_torch or built
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
        compiler, fix = f"nvcc {nvcc.cuda} from {nvcc.provider}", None
        help_text = (
            f"set `cuda` to a version of CUDA {major_version(nvcc.cuda)}, or install CUDA "
            f"toolkit {cuda} on the target yourself"
        )
        if nvcc.route == ("cuda_toolkit",):
            compiler, fix = f"nvcc {nvcc.cuda}", set_toolkit_fix(cuda)
            help_text = fix.title
        related = related_at(route, "compiled against torch")
        if target.gpu_settings.cuda != "auto":
            related = (
                related_at(target.gpu_settings.cuda_route, f"selects wheels for CUDA {cuda}")
                + related
            )
        yield RULE.diagnostic(
            f"{package.key} is compiled with {compiler}, but torch's wheels are for CUDA {cuda}",
            nvcc.route,
            severity=None if against_torch and fix else Severity.WARNING,
            why=(
                "torch.utils.cpp_extension rejects a compiler of a different major version, with "
                'the error "The detected CUDA version mismatches the version that was used to '
                'compile PyTorch".'
            ),
            help=help_text,
            related=related,
            fix=fix,
        )


def _is_downloaded(context: LintContext, package: Package) -> bool:
    """Return whether the build of flash-attn downloads a wheel, so that nothing is compiled."""
    requested = requested_package(context, package.key) if package.key == "flash-attn" else None
    build = find_flash_attention_build(context, requested) if requested else None
    return build is not None and not build.reason


RULE = Rule(
    id="CUD013",
    name="toolkit-major-differs",
    severity=Severity.ERROR,
    sources=(
        "_check_cuda_version in torch/utils/cpp_extension.py of torch 2.13.0",
        "lm-sys/FastChat#1203",
    ),
    check=_check,
    bad=examples(
        example(
            'gpu: A100\ncuda: "13.0"\ncuda_toolkit: «"12.8"»\npython: "3.12"\n'
            "packages: [ninja, packaging, psutil, setuptools, wheel, "
            "torch==2.11.0, {name: mamba-ssm, build: true}]\n",
            other_ids=("SPC009",),
        ),
        example(
            'gpu: A100\ncuda: "13.0"\npython: "3.12"\n'
            "packages: [ninja, packaging, psutil, setuptools, wheel, "
            "torch==2.11.0, {name: mamba-ssm, build: true}]\n"
            'targets: {c: {kind: «colab», runtime: "2026.07"}}\n',
            other_ids=(
                "IMG027",
                "IMG031",
            ),
        ),
        example(
            'gpu: A100\ncuda_toolkit: «"12.8"»\npython: "3.12"\n'
            "packages: [ninja, packaging, psutil, setuptools, wheel, "
            "torch, {name: mamba-ssm, build: true}]\n",
            ResolvedSet({"torch": "2.11.0"}, "3.12", "cu130"),
        ),
    ),
    good=examples(
        'gpu: A100\ncuda: "12.6"\ncuda_toolkit: "12.8"\npython: "3.12"\n'
        "packages: [ninja, packaging, psutil, setuptools, wheel, "
        "torch==2.11.0, {name: mamba-ssm, build: true}]\n",
        'gpu: A100\ncuda: "13.0"\ncuda_toolkit: "12.8"\npython: "3.12"\n'
        "packages: [torch==2.11.0]\n",
    ),
)
