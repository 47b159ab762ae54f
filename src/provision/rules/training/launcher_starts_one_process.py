"""A strategy needs one process per GPU, but the launcher starts a single process.

## What it does

Looks for `launcher: python` with `strategy: ddp`, `fsdp` or ZeRO if a target has several GPUs.
There is no finding with Lightning, which starts its processes itself.

## Why

ddp, fsdp and ZeRO divide work between processes. A single process uses only one GPU, or falls back
to DataParallel.

## How to fix

Set `launcher: torchrun` or `launcher: accelerate`, or leave it at `auto`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import replace_fix
from provision.rules.package_requirements import starts_processes
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    several = [device for device in context.devices if device.is_nvidia and device.gpu.count > 1]
    if training.launcher != "python" or training.strategy == "none" or not several:
        return
    if starts_processes(context) or context.resolved is not None:
        return
    yield RULE.diagnostic(
        f"`launcher: python` starts a single process, but `strategy: {training.strategy}` "
        f"needs one process for each of the {several[0].gpu.count} GPUs",
        ("training", "launcher"),
        why="A single process uses only one GPU, or falls back to DataParallel.",
        help="set `launcher: torchrun` or `launcher: accelerate`",
        related=related_at(("training", "strategy"), "strategy set here")
        + related_at(several[0].gpu_route, "GPUs requested here"),
        fix=replace_fix("set `launcher: torchrun`", ("training", "launcher"), "torchrun"),
    )


RULE = Rule(
    id="TRN008",
    name="launcher-starts-one-process",
    severity=Severity.WARNING,
    sources=("PyTorch documentation, torchrun", "trainer.py of transformers 5.23.0"),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: ddp, launcher: «python»}\n",
        'gpu: L4\npython: "3.11"\npackages: [torch]\n'
        "training: {strategy: fsdp, launcher: «python»}\ntargets: {a: {kind: local, gpu: L4:8}}\n",
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: [torch, lightning]\n'
        "training: {strategy: ddp, launcher: python}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: ddp, launcher: torchrun}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: ddp}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {launcher: python}\n",
    ),
)
