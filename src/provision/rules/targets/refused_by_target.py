"""A target does not support a field of the spec.

## What it does

Finds every field that `plan` or `lock` would refuse, according to the text of the spec alone: a
Jupyter kernel without ipykernel, conda packages without a conda target, `cuda_toolkit`, GPU
requirements on a target without a GPU. If only some targets refuse a field of the spec, the finding
is a warning.

## Why

A field without effect is never ignored: `plan` and `lock` refuse it, with the same message.

## How to fix

Follow the finding. Set `gpu`, `requires` or `paths` on the target if the other targets need the
field.
"""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Route, Severity
from provision.kinds.base import Refusal
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.target_facts import find_unlockable


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:  # a resolved set is for some of the targets only
        return
    for refusal in find_unlockable(context.spec):
        if not refusal.rule:
            yield _finding(refusal, "`lock` refuses it.")
    targets: dict[Refusal, list[str]] = {}
    refusing: dict[Route, set[str]] = {}
    for name, refusals in context.refusals.items():
        for refusal in refusals:
            targets.setdefault(refusal, []).append(name)
            refusing.setdefault(refusal.route, set()).add(name)
    for refusal, names in targets.items():
        severity = None
        is_shared = refusal.route[0] != "targets"
        if is_shared and len(refusing[refusal.route]) < len(context.spec.targets):
            severity = Severity.WARNING
        if not refusal.rule:
            yield _finding(
                refusal,
                f"`plan` will fail for target {', '.join(f'`{name}`' for name in names)}.",
                severity,
            )


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
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: [numpy]\n'
        "targets: {here: {kind: local, kernel: «true»}}\n",
        'gpu: none\npython: "3.12"\npackages: [numpy]\nconda_packages: «[ffmpeg]»\n',
        'gpu: none\npython: "3.12"\npackages: [numpy]\nrequires: {vram: «16GiB»}\n',
    ),
    good=(
        Example(
            'gpu: none\npython: "3.12"\npackages: [ipykernel]\n'
            "targets: {here: {kind: local, kernel: true}}\n"
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: [numpy]\nconda_packages: [ffmpeg]\n'
            "targets: {here: {kind: local, manager: conda}}\n"
        ),
    ),
)
