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

from provision.diagnostics import Fix, Route, Severity
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
    cards = {
        target.gpu_settings.gpu_route: target.card
        for target in context.targets
        if target.card is not None and target.gpu_settings.flavour != "cpu"
    }
    oldest = min(cards.items(), key=lambda pair: require_version(pair[1].cc), default=None)
    if oldest is None:
        return
    gpu, card = oldest
    for major in MAJORS:
        line = _least_cudnn(context, f"nvidia-cudnn-cu{major}")
        row = context.facts.cudnn_floor(major, line[1]) if line else None
        if line is None or row is None or require_version(card.cc) >= require_version(row.cc_min):
            continue
        yield RULE.diagnostic(
            f"cuDNN {line[1]} for CUDA {major} needs compute capability {row.cc_min}, and "
            f"{card.name} has {card.cc}",
            line[0],
            severity=Severity.WARNING,
            why="Convolutions and cuDNN's attention fail at run time on that card.",
            help=f"leave nvidia-cudnn-cu{major} to torch, or bound it: "
            f"nvidia-cudnn-cu{major}<{row.first}",
            related=related_at(gpu, "card asked for here"),
            fix=_fix(context, f"nvidia-cudnn-cu{major}", row.first),
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


def _fix(context: LintContext, name: str, below: str) -> Fix | None:
    line = find_line(context, name)
    if line is None:
        return None
    return unsafe_fix(f"write {name}<{below}", set_version_edit(context, *line, f"<{below}"))


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
