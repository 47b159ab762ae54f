"""The system's gcc is newer than nvcc supports.

## What it does

If something is compiled and the operating system of a target is known (from its image or Colab
runtime), compares its gcc with the newest one that `cuda_toolkit` supports.

## Why

nvcc checks its host compiler and stops: "#error -- unsupported GNU version! gcc versions later than
12 are not supported!". Ubuntu 24.04 has gcc 13, which CUDA 12.4 is the first to support.

## How to fix

Use a newer toolkit of the same major version, or install an older gcc and set `NVCC_PREPEND_FLAGS:
-ccbin /usr/bin/g++-12` under `env`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import require_version
from provision.rules.examples import EXAMPLE_TARGET
from provision.rules.rule import Example, Findings, LintContext, Rule, example, examples, related_at
from provision.rules.source_builds import (
    major_version,
    operating_system_at,
    set_toolkit_fix,
    toolkit_to_build_with,
    wheel_cuda_at,
)


def _check(context: LintContext) -> Findings:
    toolkit = toolkit_to_build_with(context)
    if toolkit is None:
        return
    for target in context.targets:
        system = operating_system_at(context, target)
        if system is None or int(system.gcc) <= toolkit.gcc_max:
            continue
        major = major_version(wheel_cuda_at(context, target) or toolkit.cuda)
        sufficient = [
            row.cuda
            for row in context.facts.toolkits.values()
            if row.gcc_max >= int(system.gcc) and major_version(row.cuda) == major
        ]
        help_text = (
            f"install gcc {toolkit.gcc_max} and set `NVCC_PREPEND_FLAGS: -ccbin "
            f"/usr/bin/g++-{toolkit.gcc_max}` under `env`"
        )
        fix = None
        if sufficient:
            fix = set_toolkit_fix(min(sufficient, key=require_version))
            help_text = f"{fix.title}, or {help_text}"
        yield RULE.diagnostic(
            f"CUDA toolkit {toolkit.cuda} supports gcc up to {toolkit.gcc_max}, but "
            f"{system.os} has gcc {system.gcc}",
            ("cuda_toolkit",),
            severity=toolkit.evidence.cap_severity(Severity.ERROR),
            evidence=system.evidence,
            why='nvcc rejects newer host compilers with the error "unsupported GNU version".',
            help=help_text,
            related=related_at(
                target.route_to("image" if target.image else "runtime"), f"has {system.os}"
            ),
            fix=fix,
        )


RULE = Rule(
    id="CUD014",
    name="toolkit-compiler-too-new",
    severity=Severity.ERROR,
    sources=(
        "crt/host_config.h of the nvidia-cuda-nvcc wheels",
        "package lists of the distributions (gcc)",
        "pytorch/pytorch#136556",
    ),
    check=_check,
    bad=examples(
        example(
            'gpu: T4\ncuda: "12.4"\ncuda_toolkit: «"12.2"»\npython: "3.12"\npackages: '
            "[torch==2.6.0, {name: our-kernels, build: true}]\ntargets:\n"
            f"  wb: {{{EXAMPLE_TARGET}, image: common-cu129-ubuntu-2404-nvidia-580}}\n",
            other_ids=("GCP024", "IMG004"),
        ),
        Example(
            'gpu: T4\ncuda: "11.8"\ncuda_toolkit: "11.8"\npython: "3.12"\npackages: '
            "[torch==2.6.0, {name: our-kernels, build: true}]\ntargets:\n"
            f"  wb: {{{EXAMPLE_TARGET}, image: workbench-instances-2603-20261004-2157-rc0}}\n",
            '"11.8"',
            other_ids=("GCP024",),
        ),
    ),
    good=examples(
        'gpu: T4\ncuda: "12.4"\ncuda_toolkit: "12.4"\npython: "3.12"\npackages: '
        "[torch==2.6.0, {name: our-kernels, build: true}]\ntargets:\n"
        f"  wb: {{{EXAMPLE_TARGET}, image: common-cu129-ubuntu-2404-nvidia-580}}\n",
        'gpu: T4\ncuda: "12.4"\ncuda_toolkit: "12.2"\npython: "3.12"\n'
        "packages: [torch==2.6.0, {name: our-kernels, build: true}]\n",
    ),
)
