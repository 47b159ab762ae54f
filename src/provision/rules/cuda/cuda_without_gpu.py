"""A CUDA version without an NVIDIA GPU, or a GPU without CUDA.

## What it does

On every target, compares the accelerator with the CUDA version that applies to it: a CUDA version
without an NVIDIA GPU, or a GPU with `cuda: none`.

## Why

CUDA builds on a machine without a GPU are gigabytes that are never used. CPU builds on a machine
with a GPU leave it idle while you pay for it.

## How to fix

`gpu: none` implies `cuda: none`, so remove `cuda` there. If the spec sets a version, a target
without a GPU must set `cuda: none`.
"""

from __future__ import annotations

from provision.diagnostics import Fix, Insert, Severity
from provision.rules.edits import replace_fix
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for device in context.devices:
        if device.is_nvidia == (device.cuda != "none") or device.cuda == "auto":
            continue
        right, why = "none", "CUDA builds would be installed but not used."
        if device.is_nvidia:
            right, why = "auto", "The CPU builds of torch would leave the GPU idle."
        outer, inner = sorted((device.gpu_route, device.cuda_route), key=len)
        at = f" on target `{inner[1]}`" if len(inner) > 1 else ""
        title = f"set `cuda: {right}`{at}"
        # The intent is clear if a target overrides only gpu, but not if both are written.
        if inner == device.gpu_route:
            fix = Fix(title, (Insert(inner[:-1], "cuda", right),))
        else:
            fix = replace_fix(title, inner, right)
        yield RULE.diagnostic(
            f"`cuda: {device.cuda}` conflicts with `gpu: {device.gpu.type}`{at}",
            inner,
            why=why,
            help=f"{title}, or correct `gpu`",
            related=related_at(outer, f"{outer[-1]} set here"),
            fix=fix,
        )


RULE = Rule(
    id="CUD003",
    name="cuda-without-gpu",
    severity=Severity.ERROR,
    sources=("the spec language: `gpu: none` implies `cuda: none`",),
    check=_check,
    bad=examples(
        'gpu: none\ncuda: «"12.8"»\npython: "3.11"\npackages: [torch]\n',
        'gpu: L4\ncuda: «none»\npython: "3.11"\npackages: [torch]\n',
        'gpu: mps\ncuda: «"12.8"»\npython: "3.11"\npackages: [torch]\nplatforms: [macos-arm64]\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch]\ntargets:\n'
        "  laptop: {kind: local, gpu: «none»}\n  server: {kind: local}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch]\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch]\ntargets:\n'
        "  laptop: {kind: local, gpu: none, cuda: none}\n",
    ),
)
