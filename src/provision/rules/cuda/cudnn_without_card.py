"""A cuDNN that has dropped the card.

## What it does

Looks at the cuDNN that is listed (`nvidia-cudnn-cu12`), or that was resolved, and at the least
compute capability that this line of it runs on.

## Why

cuDNN for CUDA 12 runs on Turing (7.5) and newer from 9.11 on; 9.10 is the last for Volta, Pascal
and Maxwell. Convolutions and attention then fail at run time, while plain matrix products work.
torch pins the cuDNN that goes with each of its builds.

## How to fix

Leave cuDNN to torch, or bound it.
"""

from __future__ import annotations

from provision.diagnostics import Route, Severity
from provision.facts.versions import lower_bound, require_version
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)

MAJORS = ("11", "12", "13")


def _check(context: LintContext) -> Findings:
    cards = [
        (target.card, target.gpu_settings.gpu_route)
        for target in context.targets
        if target.card and target.gpu_settings.flavour != "cpu"
    ]
    if not cards:
        return
    card, gpu_route = min(cards, key=lambda pair: require_version(pair[0].cc))
    for major in MAJORS:
        name = f"nvidia-cudnn-cu{major}"
        route, version = _least_cudnn(context, name) or ((), "")
        row = context.facts.cudnn_floor(major, version)
        if row is None or require_version(card.cc) >= require_version(row.cc_min):
            continue
        line = find_line(context, name)
        bound = f"{name}<{row.first}"
        fix = None
        if line:
            fix = unsafe_fix(f"write {bound}", set_version_edit(context, *line, f"<{row.first}"))
        yield RULE.diagnostic(
            f"cuDNN {version} for CUDA {major} needs compute capability {row.cc_min}, and "
            f"{card.name} has {card.cc}",
            route,
            severity=Severity.WARNING,
            why="Convolutions and cuDNN's attention fail at run time on that card.",
            help=f"leave {name} to torch, or bound it: {bound}",
            related=related_at(gpu_route, "card asked for here"),
            fix=fix,
        )


def _least_cudnn(context: LintContext, name: str) -> tuple[Route, str] | None:
    """Return the least cuDNN that may come, with the line that lets it in."""
    line = find_line(context, name)
    if context.resolved is not None:
        route = next(
            (candidate[0] for candidate in (line, find_line(context, "torch")) if candidate),
            ("packages",),
        )
        version = context.resolved.versions.get(name)
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
    bad=(
        Example(
            'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.10.0, '
            "nvidia-cudnn-cu12==9.14.0.64]\n",
            "nvidia-cudnn-cu12==9.14.0.64",
        ),
        Example(
            'gpu: P100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.10.0]\n',
            "torch==2.10.0",
            ResolvedSet({"torch": "2.10.0", "nvidia-cudnn-cu12": "9.11.0.98"}, "3.12", "cu126"),
        ),
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.10.0, '
        "nvidia-cudnn-cu12==9.10.2.21]\n",
        'gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.10.0, '
        "nvidia-cudnn-cu12==9.14.0.64]\n",
    ),
)
