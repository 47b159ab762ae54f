"""flash-attn has no prebuilt wheel for this torch, CUDA or Python.

## What it does

Compares the requested torch releases, CUDA version and Python with the wheels on flash-attn's
release page. Its installation downloads one of these wheels if it matches.

## Why

Compiling flash-attn needs a CUDA toolkit for torch's major CUDA version, a lot of memory, and up to
several hours.

## How to fix

Use a torch and a Python that have a wheel, or remove flash-attn: torch's own
`scaled_dot_product_attention` uses the same kernels.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import next_version
from provision.rules.flash_attention import find_flash_attention_build
from provision.rules.package_requirements import requested_package
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)


def _check(context: LintContext) -> Findings:
    package = requested_package(context, "flash-attn")
    if package is None or package.package is None or not package.package.build:
        return
    build = find_flash_attention_build(context, package)
    if build is None or not build.reason:
        return
    wheels, newer = build.wheels, package.may_be(next_version(build.wheels.version))
    pythons, python = "", context.spec.python
    if wheels.pythons:
        python = python if python in wheels.pythons else wheels.pythons[-1]
        pythons = f" and Python {wheels.pythons[0]} to {wheels.pythons[-1]}"
    yield RULE.diagnostic(
        f"flash-attn {wheels.version} has prebuilt wheels for torch {wheels.torch_first} "
        f"to {wheels.torch_last}, CUDA {' and '.join(wheels.cuda_majors)}{pythons}, but "
        f"{build.reason}",
        package.route,
        severity=Severity.INFO if newer else Severity.WARNING,
        why=(
            "It will be compiled, which can take hours and needs nvcc for torch's major CUDA "
            "version."
        )
        + (" A newer release may have wheels." if newer else ""),
        help=f"use torch {wheels.torch_last}.* with Python {python}, or remove flash-attn",
        related=related_at(build.torch_route, "torch requested here"),
    )


RULE = Rule(
    id="PKG015",
    name="flash-attn-compiled",
    severity=Severity.WARNING,
    sources=(
        (
            "Dao-AILab/flash-attention README.md, setup.py and .github/workflows/publish.yml "
            "at each tag"
        ),
        "Dao-AILab/flash-attention#1717",
    ),
    check=_check,
    bad=examples(
        Example(
            'gpu: L4\npython: "3.11"\n'
            "packages: [ninja, packaging, psutil, setuptools, wheel, "
            'torch==2.9.1, {name: flash-attn, version: "==2.8.3", build: true}]\n',
            '{name: flash-attn, version: "==2.8.3", build: true}',
            other_ids=("CUD011",),
        ),
        example(
            'gpu: L4\npython: "3.14"\n'
            "packages: [ninja, packaging, psutil, setuptools, wheel, "
            "torch==2.10.0, «{name: flash-attn, build: true}»]\n",
            other_ids=("CUD011",),
        ),
        example(
            'gpu: L4\npython: "3.11"\npackages: [ninja, packaging, psutil, setuptools, wheel, '
            "torch, «{name: flash-attn, build: true}»]\n",
            ResolvedSet({"torch": "2.13.0+cu130", "flash-attn": "2.8.3.post1"}, "3.11", "cu130"),
            other_ids=("CUD011",),
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\n'
        "packages: [ninja, packaging, psutil, setuptools, wheel, "
        'torch==2.8.0, {name: flash-attn, version: "==2.8.3", build: true}]\n',
        'gpu: L4\npython: "3.13"\npackages: [ninja, packaging, psutil, setuptools, wheel, '
        "torch==2.8.0, {name: flash-attn, build: true}]\n",
        'gpu: L4\npython: "3.11"\npackages: [ninja, packaging, psutil, setuptools, wheel, '
        "torch, {name: flash-attn, build: true}]\n",
    ),
)
