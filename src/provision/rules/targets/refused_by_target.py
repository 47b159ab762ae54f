"""A target cannot do what the spec declares.

## What it does

Finds every field that `plan` or `lock` would refuse, judged from the text of the spec alone: a
Jupyter kernel without ipykernel, conda packages without a target that conda makes, `cuda_toolkit`,
requirements that only a card can meet at a target without one. A field of the whole spec that only
some of its targets refuse is a warning.

## Why

A field without effect is never ignored: `plan` and `lock` refuse it, with the same words.

## How to fix

Follow the finding. Give a target its own `gpu`, `requires` or `paths` if the others need the field.
"""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Severity
from provision.kinds.base import Refusal
from provision.rules.rule import Example, Findings, LintContext, Rule
from provision.target_facts import find_target_refusals, find_unlockable


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:  # a resolved set has a part of the targets only
        return
    for refusal in find_unlockable(context.spec):
        if not refusal.rule:
            yield _finding(refusal, "lock refuses it.")
    targets: dict[Refusal, list[str]] = {}
    for name in context.spec.targets:
        for refusal in find_target_refusals(context.spec, name, context.facts):
            targets.setdefault(refusal, []).append(name)
    refused_everywhere = _refused_everywhere(targets, len(context.spec.targets))
    for refusal, names in targets.items():
        severity = None
        if refusal.route[0] != "targets" and refusal.route not in refused_everywhere:
            severity = Severity.WARNING
        if not refusal.rule:
            yield _finding(refusal, f"plan refuses target {', '.join(names)}.", severity)


def _refused_everywhere(
    targets: dict[Refusal, list[str]], count: int
) -> set[tuple[str | int, ...]]:
    by_route: dict[tuple[str | int, ...], set[str]] = {}
    for refusal, names in targets.items():
        by_route.setdefault(refusal.route, set()).update(names)
    return {route for route, names in by_route.items() if len(names) == count}


def _finding(refusal: Refusal, why: str, severity: Severity | None = None) -> Diagnostic:
    return RULE.diagnostic(
        refusal.why, refusal.route, why=why, help=refusal.hint, severity=severity
    )


RULE = Rule(
    id="SPC009",
    name="refused-by-target",
    severity=Severity.ERROR,
    sources=("the spec language: a field without effect is refused",),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.12"\npackages: [numpy]\ntargets: {here: {kind: local, '
            "kernel: true}}\n",
            "true",
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: [numpy]\nconda_packages: [ffmpeg]\n', "[ffmpeg]"
        ),
        Example('gpu: none\npython: "3.12"\npackages: [numpy]\nrequires: {vram: 16GiB}\n', "16GiB"),
    ),
    good=(
        Example(
            'gpu: none\npython: "3.12"\npackages: [ipykernel]\ntargets: {here: {kind: local, '
            "kernel: true}}\n"
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: [numpy]\nconda_packages: [ffmpeg]\ntargets: '
            "{here: {kind: local, manager: conda}}\n"
        ),
    ),
)
