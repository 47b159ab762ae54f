"""A strategy needs a process for each GPU, and the launcher starts one.

## What it does

Looks for `launcher: python` with `strategy: ddp`, `fsdp` or ZeRO if a target has several cards.
There is no finding with Lightning, which starts its processes itself.

## Why

ddp, fsdp and ZeRO divide work between processes. A single one takes one card, or falls back to
DataParallel.

## How to fix

Write `launcher: torchrun` or `launcher: accelerate`, or leave it to `auto`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import replace_fix
from provision.rules.package_requirements import starts_processes
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    several = [device for device in context.devices if device.is_nvidia and device.gpu.count > 1]
    if training.launcher != "python" or training.strategy == "none" or not several:
        return
    if starts_processes(context) or context.resolved is not None:
        return
    yield RULE.diagnostic(
        f"launcher: python starts one process, and strategy: {training.strategy} needs one "
        f"for each of {several[0].gpu.count} cards",
        ("training", "launcher"),
        why="A single process takes one card, or falls back to DataParallel.",
        help="write launcher: torchrun or launcher: accelerate",
        related=related_at(("training", "strategy"), "strategy asked for here")
        + related_at(several[0].gpu_route, "cards asked for here"),
        fix=replace_fix("write launcher: torchrun", ("training", "launcher"), "torchrun"),
    )


RULE = Rule(
    id="TRN008",
    name="launcher-starts-one-process",
    severity=Severity.WARNING,
    sources=("PyTorch documentation, torchrun", "trainer.py of transformers 5.23.0"),
    check=_check,
    bad=(
        Example(
            'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{strategy: ddp, launcher: python}\n",
            "python",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {strategy: fsdp, '
            "launcher: python}\ntargets: {a: {kind: local, gpu: L4:8}}\n",
            "python",
        ),
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: [torch, lightning]\ntraining: {strategy: '
        "ddp, launcher: python}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{strategy: ddp, launcher: torchrun}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{strategy: ddp}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{launcher: python}\n",
    ),
)
