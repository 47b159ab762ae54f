"""A CUDA version without an NVIDIA card, or a card without CUDA.

## What it does

At every target, compares the accelerator with the CUDA version that applies there: a CUDA version
without an NVIDIA card, or a card with `cuda: none`.

## Why

CUDA builds on a machine without a card are gigabytes that never run. CPU builds on a machine with a
card leave it idle while it is paid for.

## How to fix

`gpu: none` implies `cuda: none`, so leave `cuda` out there. A target without a card needs its own
`cuda: none` when the spec names a version.
"""

from __future__ import annotations

from provision.diagnostics import (
    Fix,
    Insert,
    Severity,
)
from provision.rules.edits import replace_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for device in context.devices:
        if device.is_nvidia == (device.cuda != "none") or device.cuda == "auto":
            continue
        message = f"cuda: {device.cuda} is asked for with gpu: {device.gpu.type}"
        if device.is_nvidia:
            right = "auto"
            why = "The CPU builds of torch would leave the card idle."
        else:
            right = "none"
            message += ", which has no CUDA"
            why = "CUDA builds would be installed for nothing."
        outer, inner = sorted((device.gpu_route, device.cuda_route), key=len)
        at = f" at target {inner[1]}" if len(inner) > 1 else ""
        title = f"write cuda: {right}{at}"
        # The intent is clear if a target overrides only gpu, but not if both are written.
        if inner == device.gpu_route:
            fix = Fix(title, (Insert(inner[:-1], "cuda", right),))
        else:
            fix = replace_fix(title, inner, right)
        yield RULE.diagnostic(
            message + at,
            inner,
            why=why,
            help=f"{title}, or correct gpu",
            related=related_at(outer, f"{outer[-1]} asked for here"),
            fix=fix,
        )


RULE = Rule(
    id="CUD003",
    name="cuda-without-gpu",
    severity=Severity.ERROR,
    sources=("the spec language: `gpu: none` implies `cuda: none`",),
    check=_check,
    bad=(
        Example('gpu: none\ncuda: "12.8"\npython: "3.11"\npackages: [torch]\n', '"12.8"'),
        Example('gpu: L4\ncuda: none\npython: "3.11"\npackages: [torch]\n', "none"),
        Example(
            'gpu: mps\ncuda: "12.8"\npython: "3.11"\npackages: [torch]\nplatforms: [macos-arm64]\n',
            '"12.8"',
        ),
        Example(
            'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch]\ntargets:\n  laptop: '
            "{kind: local, gpu: none}\n  server: {kind: local}\n",
            "none",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch]\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch]\ntargets:\n  laptop: '
        "{kind: local, gpu: none, cuda: none}\n",
    ),
)
