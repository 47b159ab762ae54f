"""The CUDA compiler makes no code for the card.

## What it does

Where something is compiled, compares the compute capability of the card with what `cuda_toolkit`
compiles for.

## Why

"nvcc fatal: Unsupported gpu architecture". CUDA 12 dropped Kepler, CUDA 13 everything before Turing
(V100, P100, GTX 10xx). Toolkits before 12.8 do not know Blackwell: at best they make PTX of an
older capability, and most builds do not ask for that.

## How to fix

Take a toolkit that supports the card.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.facts.compatibility import runs_machine_code
from provision.facts.schema_torch import CudaToolkit
from provision.facts.versions import format_versions, require_version
from provision.rules.edits import replace_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.source_builds import major_version, source_built_packages, wheel_cuda_at


def _check(context: LintContext) -> Findings:
    requested = context.spec.cuda_toolkit
    toolkit = None
    if requested and source_built_packages(context):
        toolkit = context.facts.toolkits.get(requested)
    if toolkit is None:
        return
    for route, target in {
        target.gpu_settings.gpu_route: target for target in context.targets
    }.items():
        card = target.card
        if card is None or _makes_code_for(context, toolkit, card):
            continue
        dropped = require_version(card.cc) < require_version(toolkit.cc_min)
        knows = [
            row.cuda
            for row in sorted(
                context.facts.toolkits.values(), key=lambda row: require_version(row.cuda)
            )
            if _makes_code_for(context, row, card)
        ]
        wheels = wheel_cuda_at(context, target)
        same = [
            cuda for cuda in knows if wheels and major_version(cuda) == major_version(wheels)
        ] or knows
        right = None
        if same:
            right = same[-1] if dropped else same[0]
        yield RULE.diagnostic(
            f"cuda_toolkit: {toolkit.cuda} compiles for {toolkit.cc_min} to "
            f"{toolkit.cc_max}, and {card.name} has compute capability {card.cc}",
            ("cuda_toolkit",),
            severity=card.evidence.cap_severity(toolkit.evidence.cap_severity(Severity.ERROR))
            if dropped
            else Severity.WARNING,
            why="The build ends in: nvcc fatal: Unsupported gpu architecture."
            + ("" if dropped else " Only PTX of an older capability could serve."),
            help=f'write cuda_toolkit: "{right}"; {format_versions(knows)} know the card'
            if right
            else "take another card",
            related=related_at(route, "card asked for here"),
            fix=replace_fix(f'write cuda_toolkit: "{right}"', ("cuda_toolkit",), f'"{right}"')
            if right
            else None,
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
    bad=(
        Example(
            'gpu: V100\ncuda_toolkit: "13.0"\npython: "3.12"\npackages: [torch==2.10.0, '
            "{name: our-kernels, build: true}]\n",
            '"13.0"',
            other_ids=("SPC009",),
        ),
        Example(
            'gpu: RTX-5090\ncuda: "12.8"\ncuda_toolkit: "12.6"\npython: "3.12"\npackages: '
            "[torch==2.10.0, {name: our-kernels, build: true}]\n",
            '"12.6"',
            other_ids=("SPC009",),
        ),
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\ncuda_toolkit: "12.9"\npython: "3.12"\npackages: '
        "[torch==2.10.0, {name: our-kernels, build: true}]\n",
        'gpu: RTX-5090\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
        "[torch==2.10.0, {name: our-kernels, build: true}]\n",
        'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: '
        "[torch==2.10.0, {name: our-kernels, build: true}]\n",
    ),
)
