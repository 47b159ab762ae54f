"""The CUDA compiler does not support the GPU.

## What it does

If something is compiled, compares the compute capability of the GPU with those that `cuda_toolkit`
compiles for.

## Why

"nvcc fatal: Unsupported gpu architecture". CUDA 12 dropped Kepler, CUDA 13 everything before Turing
(V100, P100, GTX 10xx). Toolkits before 12.8 do not support Blackwell: at best they make PTX for an
older capability, and most builds do not request that.

## How to fix

Use a toolkit that supports the GPU.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.facts.compatibility import runs_machine_code
from provision.facts.schema_torch import CudaToolkit
from provision.facts.versions import format_versions, require_version
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_gpu
from provision.rules.source_builds import (
    major_version,
    set_toolkit_fix,
    toolkit_to_build_with,
    wheel_cuda_at,
)


def _check(context: LintContext) -> Findings:
    toolkit = toolkit_to_build_with(context)
    if toolkit is None:
        return
    known = sorted(context.facts.toolkits.values(), key=lambda row: require_version(row.cuda))
    for target in context.targets_by_gpu.values():
        card = target.card
        if card is None or _makes_code_for(context, toolkit, card):
            continue
        is_dropped = require_version(card.cc) < require_version(toolkit.cc_min)
        severity = Severity.WARNING
        why = "The build fails with `nvcc fatal: Unsupported gpu architecture`."
        if is_dropped:
            severity = toolkit.evidence.cap_severity(Severity.ERROR)
        else:
            why += " Only PTX code for an older compute capability could run on the GPU."
        cudas = [row.cuda for row in known if _makes_code_for(context, row, card)]
        wheels = wheel_cuda_at(context, target) or ""
        same = [cuda for cuda in cudas if major_version(cuda) == major_version(wheels)] or cudas
        fix = set_toolkit_fix(same[-1 if is_dropped else 0]) if same else None
        yield RULE.diagnostic(
            f"CUDA toolkit {toolkit.cuda} compiles for compute capability {toolkit.cc_min} to "
            f"{toolkit.cc_max}, but {card.name} has {card.cc}",
            ("cuda_toolkit",),
            severity=severity,
            evidence=card.evidence,
            why=why,
            help=f"{fix.title}; toolkits {format_versions(cudas)} support the GPU"
            if fix
            else "use a different GPU",
            related=related_gpu(target),
            fix=fix,
        )


def _makes_code_for(context: LintContext, toolkit: CudaToolkit, card: Card) -> bool:
    """Return whether a compiler makes code for a card, by its list or else by its bounds."""
    if not toolkit.capabilities:
        return (
            require_version(toolkit.cc_min) <= require_version(card.cc)
            and require_version(card.cc).major <= require_version(toolkit.cc_max).major
        )
    return any(
        runs_machine_code(card.cc, code, context.facts.capabilities)
        for code in toolkit.capabilities
    )


RULE = Rule(
    id="CUD015",
    name="toolkit-without-card",
    severity=Severity.ERROR,
    sources=("ptxas --help of the nvidia-cuda-nvcc wheels", "pytorch/pytorch#10201"),
    check=_check,
    bad=examples(
        example(
            'gpu: V100\ncuda_toolkit: «"13.0"»\npython: "3.12"\n'
            "packages: [torch==2.10.0, {name: our-kernels, build: true}]\n",
            other_ids=("SPC009",),
        ),
        example(
            'gpu: RTX-5090\ncuda: "12.8"\ncuda_toolkit: «"12.6"»\npython: "3.12"\n'
            "packages: [torch==2.10.0, {name: our-kernels, build: true}]\n",
            other_ids=("SPC009",),
        ),
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\ncuda_toolkit: "12.9"\npython: "3.12"\n'
        "packages: [torch==2.10.0, {name: our-kernels, build: true}]\n",
        'gpu: RTX-5090\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\n'
        "packages: [torch==2.10.0, {name: our-kernels, build: true}]\n",
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\n'
        "packages: [torch==2.10.0, {name: our-kernels, build: true}]\n",
    ),
)
