"""The CUDA compiler is of another major version than the CUDA of torch's wheels.

## What it does

Where packages are compiled against torch, compares nvcc (`cuda_toolkit`, or what Colab or the image carries) with the CUDA version of the wheels.

## Why

`torch.utils.cpp_extension` compares both before it compiles: another major version ends in "The detected CUDA version (12.8) mismatches the version that was
used to compile PyTorch (13.0)". Another minor version of the same major is only noted, and works.

## How to fix

Take a toolkit of the same major version, best of the same minor one.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Applicability, Diagnostic, Fix, Place, Replace, Route, Severity
from provision.rules.building import Nvcc, built, cuda_at, extensions, major_of, nvcc_at
from provision.rules.rule import Case, Example, Resolved, Rule, seen
from provision.sites import Site
from provision.spec import Package


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each compiler whose major version is not that of the wheels; a warning where nothing is known to compile against torch."""
    sure, said = extensions(case), set()
    packages = sure or built(case)
    for site in case.sites if packages else ():
        cuda, nvcc = cuda_at(case, site), nvcc_at(case, site)
        if cuda is None or nvcc is None or major_of(cuda) == major_of(nvcc.cuda) or (nvcc.route, cuda) in said:
            continue
        said.add((nvcc.route, cuda))
        own = nvcc.route == ("cuda_toolkit",)
        yield _finding(site, cuda, nvcc, packages[0], Severity.ERROR if sure and own else Severity.WARNING)


def _finding(site: Site, cuda: str, nvcc: Nvcc, package: tuple[Route, Package], severity: Severity) -> Diagnostic:
    own = nvcc.route == ("cuda_toolkit",)
    said = site.device.cuda != "auto"
    return RULE.found(
        f"{package[1].key} is compiled with nvcc {nvcc.cuda}{'' if own else f' of {nvcc.by}'}, and torch's wheels are for CUDA {cuda}",
        nvcc.route,
        severity=severity,
        why="torch.utils.cpp_extension refuses another major version: the detected CUDA version mismatches the version that was used to compile PyTorch.",
        way_out=f'write cuda_toolkit: "{cuda}"' + ("" if own else f", or a cuda of major version {major_of(nvcc.cuda)}"),
        related=((seen(site.device.cuda_route, "CUDA of the wheels"),) if said else ()) + (seen(package[0], "compiled against torch"),),
        fix=Fix(f'write cuda_toolkit: "{cuda}"', (Replace(Place(nvcc.route), f'"{cuda}"'),), Applicability.UNSAFE) if own else None,
    )


RULE = Rule(
    id="CUD013",
    name="toolkit-major-differs",
    severity=Severity.ERROR,
    summary="The CUDA compiler is of another major version than the CUDA of torch's wheels.",
    sources=("_check_cuda_version in torch/utils/cpp_extension.py of torch 2.13.0", "lm-sys/FastChat#1203"),
    page=__doc__,
    check=check,
    bad=(
        Example(
            'gpu: A100\ncuda: "13.0"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: [torch==2.11.0, {name: mamba-ssm, build: true}]\n',
            '"12.8"',
        ),
        Example(
            'gpu: A100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0, {name: mamba-ssm, build: true}]\n'
            'targets: {c: {kind: colab, runtime: "2026.07"}}\n',
            "colab",
            beside=(
                "IMG027",
                "IMG031",
            ),
        ),
        Example(
            'gpu: A100\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: [torch, {name: mamba-ssm, build: true}]\n',
            '"12.8"',
            Resolved({"torch": "2.11.0"}, "3.12", "cu130"),
        ),
    ),
    good=(
        Example('gpu: A100\ncuda: "12.6"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: [torch==2.11.0, {name: mamba-ssm, build: true}]\n'),
        Example('gpu: A100\ncuda: "13.0"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: [torch==2.11.0]\n'),
    ),
)
