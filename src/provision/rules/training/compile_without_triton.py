"""torch.compile is declared for a target without triton.

## What it does

Looks for `torch_compile: true` together with a GPU below compute capability 7.0, or with Windows
among the platforms, for which triton has no wheels. `lock` also checks that torch is among the
resolved packages.

## Why

torch.compile generates triton code for the GPU. On older GPUs it fails with "too old to be
supported by the triton GPU compiler", on Windows with "Cannot find a working triton installation".
Without torch there is nothing to compile with.

## How to fix

Set `torch_compile: false`, add torch, use a newer GPU, or use WSL2 instead of Windows.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import require_version
from provision.rules.edits import replace_fix
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
from provision.spec import Platform

ROUTE = ("training", "torch_compile")
_FIX = replace_fix("set `torch_compile: false`", ROUTE, "false")


def _check(context: LintContext) -> Findings:
    if not context.spec.training.torch_compile:
        return
    if context.resolved is None:
        yield from _old_card_findings(context)
        yield from _windows_findings(context)
    elif context.package_names.isdisjoint(("torch", "pytorch")):
        yield RULE.diagnostic(
            "`torch_compile: true` needs torch, which is not among the resolved packages",
            ROUTE,
            severity=Severity.WARNING,
            why=(
                "Without torch nothing can be compiled, so the verification skips the "
                "torch.compile checks."
            ),
            help="add torch to `packages`, or set `torch_compile: false`",
        )


def _old_card_findings(context: LintContext) -> Findings:
    floors = (
        row
        for row in context.facts.capability_floors
        if (row.package, row.use) == ("triton", "torch.compile")
    )
    floor = next(floors)
    for route, target in context.targets_by_gpu.items():
        card = target.card
        if card is None or require_version(card.cc) >= require_version(floor.cc_min):
            continue
        yield RULE.diagnostic(
            f"`torch_compile: true` needs compute capability {floor.cc_min} or higher, but "
            f"{target.gpu_settings.gpu.type} has {card.cc}",
            ROUTE,
            evidence=floor.evidence,
            why="torch.compile generates triton code, and triton does not support older GPUs.",
            help="set `torch_compile: false`, or use a newer GPU",
            related=related_at(route, "GPU requested here"),
            fix=_FIX,
        )


def _windows_findings(context: LintContext) -> Findings:
    is_local = any(target.target.kind == "local" for target in context.targets)
    has_card = any(target.gpu_settings.is_nvidia for target in context.targets)
    if not is_local or not has_card or Platform.WINDOWS_X86_64 not in context.spec.platforms:
        return
    if Platform.WINDOWS_X86_64 in context.facts.platforms["triton"].platforms:
        return
    yield RULE.diagnostic(
        "`torch_compile: true` needs triton, which has no wheel for "
        f"{Platform.WINDOWS_X86_64.value}",
        ROUTE,
        severity=Severity.WARNING,
        why='torch.compile fails with "Cannot find a working triton installation" on Windows.',
        help="set `torch_compile: false`, or remove Windows from `platforms` and use WSL2",
        related=related_at(("platforms",), "platforms to lock"),
        fix=_FIX,
    )


RULE = Rule(
    id="TRN014",
    name="compile-without-triton",
    severity=Severity.ERROR,
    sources=(
        "torch/_inductor, the error that names triton",
        "wheel tags of triton 3.9.0 on PyPI",
        "pytorch/pytorch#136361",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: P100\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.8.0]\n'
        "training: {torch_compile: «true»}\n",
        example(
            'gpu: RTX-4090\npython: "3.11"\npackages: [torch]\ntraining: {torch_compile: «true»}\n'
            "platforms: [windows-x86_64]\n",
            other_ids=("CUD010",),
        ),
        example(
            'gpu: none\npython: "3.11"\npackages: [numpy]\ntraining: {torch_compile: «true»}\n',
            ResolvedSet({"numpy": "2.4.6"}, "3.11"),
        ),
    ),
    good=(
        *examples(
            'gpu: V100\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.8.0]\n'
            "training: {torch_compile: true}\n",
            'gpu: P100\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.8.0]\n'
            "training: {torch_compile: false}\n",
            'gpu: RTX-4090\npython: "3.11"\npackages: [torch]\ntraining: {torch_compile: true}\n'
            "platforms: [linux-x86_64]\n",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {torch_compile: true}\n',
            resolved=ResolvedSet({"torch": "2.13.0"}, "3.11", "cpu"),
        ),
    ),
)
