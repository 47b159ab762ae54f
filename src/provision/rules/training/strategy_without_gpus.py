"""A strategy for several GPUs, and no target has several.

## What it does

Looks for `strategy: ddp`, `fsdp` or ZeRO where every target has one card, no card, or Apple
silicon.

## Why

With one device there is nothing to spread: ddp and fsdp add communication and save no memory. ZeRO
helps on one card only where it offloads to the CPU. On Apple silicon there is no backend for them.

## How to fix

Write `strategy: none`, or ask for more cards.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import replace_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    strategy = context.spec.training.strategy
    devices = context.devices
    if strategy == "none" or context.resolved is not None:
        return
    if any(device.is_nvidia and device.gpu.count > 1 for device in devices):
        return
    device = devices[0]
    there_is = {"mps": "Apple silicon", "none": "no card"}.get(device.gpu.type, "one card")
    severity = None
    why = "There is nothing to spread, and no memory to save."
    if strategy.startswith("deepspeed") and device.is_nvidia:
        severity = Severity.INFO
        why = "It then helps only where it offloads to the CPU."
    yield RULE.diagnostic(
        f"strategy: {strategy} spreads work over several cards, and there is {there_is}",
        ("training", "strategy"),
        severity=severity,
        why=why,
        help="write strategy: none, or ask for more cards",
        related=related_at(device.gpu_route, "asked for here"),
        fix=replace_fix("write strategy: none", ("training", "strategy"), "none"),
    )


RULE = Rule(
    id="TRN007",
    name="strategy-without-gpus",
    severity=Severity.WARNING,
    sources=(
        "PyTorch documentation, distributed communication",
        "DeepSpeed documentation, ZeRO-Offload",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{strategy: fsdp}\n",
            "fsdp",
        ),
        Example('gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {strategy: ddp}\n', "ddp"),
        Example(
            'gpu: mps\npython: "3.11"\npackages: [torch]\nplatforms: '
            "[macos-arm64]\ntraining: {strategy: ddp}\n",
            "ddp",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch, {name: deepspeed, build: '
            "true}]\ntraining: {strategy: deepspeed-zero2}\n",
            "deepspeed-zero2",
            other_ids=("TRN019",),
        ),
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{strategy: fsdp}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{strategy: fsdp}\n"
        "targets: {here: {kind: local}, big: {kind: workbench, project: p, zones: "
        "[us-central1-a], gpu: L4:4}}\n",
    ),
)
