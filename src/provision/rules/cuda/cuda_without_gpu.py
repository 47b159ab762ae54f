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
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Insert,
    Replace,
    RouteLocation,
    Severity,
)
from provision.kinds.base import GpuSettings
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for device in context.devices:
        if not device.is_nvidia and device.cuda not in ("auto", "none"):
            message = (
                f"cuda: {device.cuda} is asked for with gpu: {device.gpu.type}, which has no CUDA"
            )
            yield _finding(device, message, "CUDA builds would be installed for nothing.")
        elif device.is_nvidia and device.cuda == "none":
            yield _finding(
                device,
                f"cuda: none is asked for with gpu: {device.gpu.type}",
                "The CPU builds of torch would leave the card idle.",
            )


def _finding(device: GpuSettings, message: str, why: str) -> Diagnostic:
    right = "auto" if device.is_nvidia else "none"
    inner, outer = (
        (device.gpu_route, device.cuda_route)
        if len(device.gpu_route) > len(device.cuda_route)
        else (device.cuda_route, device.gpu_route)
    )
    edit: Edit = (
        Insert(inner[:-1], "cuda", right)
        if inner is device.gpu_route
        else Replace(RouteLocation(inner), right)
    )
    at = f" at target {inner[1]}" if len(inner) > 1 else ""
    return RULE.diagnostic(
        message + at,
        inner,
        why=why,
        help=f"write cuda: {right}{at}, or correct gpu",
        related=related_at(outer, f"{outer[-1]} asked for here"),
        # The intent is clear if a target overrides only gpu, but not if both values are written.
        fix=Fix(
            f"write cuda: {right}{at}",
            (edit,),
            Applicability.SAFE if inner is device.gpu_route else Applicability.UNSAFE,
        ),
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
