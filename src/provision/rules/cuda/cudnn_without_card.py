"""The cuDNN version no longer supports the GPU.

## What it does

Compares the GPU with the minimum compute capability of the cuDNN that is listed
(`nvidia-cudnn-cu12`) or resolved.

## Why

cuDNN for CUDA 12 requires Turing (7.5) or newer since 9.11; 9.10 is the last release for Volta,
Pascal and Maxwell. With a newer release, convolutions and attention fail at run time, while plain
matrix products work. torch pins the right cuDNN for each of its builds.

## How to fix

Let torch select cuDNN, or set an upper bound.
"""

from __future__ import annotations

from provision.diagnostics import Route, Severity
from provision.facts.versions import lower_bound, require_version
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_gpu,
)

MAJORS = ("11", "12", "13")


def _check(context: LintContext) -> Findings:
    cards = [
        (target.card, target)
        for target in context.targets
        if target.card and target.gpu_settings.flavour != "cpu"
    ]
    if not cards:
        return
    card, target = min(cards, key=lambda pair: require_version(pair[0].cc))
    for major in MAJORS:
        name = f"nvidia-cudnn-cu{major}"
        route, version = _least_cudnn(context, name) or ((), "")
        row = context.facts.cudnn_floor(major, version)
        if row is None or require_version(card.cc) >= require_version(row.cc_min):
            continue
        line = find_line(context, name)
        title = f"use {name}<{row.first}"
        fix = None
        if line:
            fix = unsafe_fix(title, set_version_edit(context, *line, f"<{row.first}"))
        yield RULE.diagnostic(
            f"cuDNN {version} for CUDA {major} requires compute capability {row.cc_min} or "
            f"higher, but {card.name} has {card.cc}",
            route,
            severity=Severity.WARNING,
            why="Convolutions and cuDNN attention fail at run time on this GPU.",
            help=f"{title}, or remove it from `packages` so that torch selects the cuDNN release",
            related=related_gpu(target),
            fix=fix,
        )


def _least_cudnn(context: LintContext, name: str) -> tuple[Route, str] | None:
    """Return the least cuDNN that may be installed, with the line that admits it."""
    line = find_line(context, name)
    if context.resolved is not None:
        version = context.resolved.versions.get(name)
        route, _ = line or find_line(context, "torch") or (("packages",), None)
        return (route, version) if version else None
    specifiers = version_specifiers(line[1]) if line else None
    low = lower_bound(specifiers) if specifiers is not None else None
    return (line[0], low) if line and low else None


RULE = Rule(
    id="CUD017",
    name="cudnn-without-card",
    severity=Severity.WARNING,
    sources=(
        "NVIDIA cuDNN support matrix, 9.10 against 9.11",
        "immich-app/immich#23110",
        "conda-forge/cudnn-feedstock#124",
    ),
    check=_check,
    bad=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\n'
        "packages: [torch==2.10.0, «nvidia-cudnn-cu12==9.14.0.64»]\n",
        example(
            'gpu: P100\ncuda: "12.6"\npython: "3.12"\npackages: [«torch==2.10.0»]\n',
            ResolvedSet({"torch": "2.10.0", "nvidia-cudnn-cu12": "9.11.0.98"}, "3.12", "cu126"),
        ),
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\n'
        "packages: [torch==2.10.0, nvidia-cudnn-cu12==9.10.2.21]\n",
        'gpu: T4\ncuda: "12.6"\npython: "3.12"\n'
        "packages: [torch==2.10.0, nvidia-cudnn-cu12==9.14.0.64]\n",
    ),
)
