"""A strategy for several GPUs is set, but no target has several GPUs.

## What it does

Looks for `strategy: ddp`, `fsdp` or ZeRO if every target has one GPU, no GPU, or Apple silicon.

## Why

With one device there is nothing to distribute: ddp and fsdp add communication and save no memory.
ZeRO helps on one GPU only if it offloads to the CPU. Apple silicon has no backend for these
strategies.

## How to fix

Set `strategy: none`, or request more GPUs.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.edits import replace_fix
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_at


def _check(context: LintContext) -> Findings:
    strategy = context.spec.training.strategy
    devices = context.devices
    if strategy == "none" or context.resolved is not None:
        return
    if any(device.is_nvidia and device.gpu.count > 1 for device in devices):
        return
    if any(job.replicas > 1 for _, job in context.targets_of(VertexJobTarget)):
        return
    device = devices[0]
    devices_text = {"mps": "Apple silicon", "none": "no GPU"}.get(device.gpu.type, "one GPU")
    severity = None
    why = "There is nothing to distribute, and no memory to save."
    if strategy.startswith("deepspeed") and device.is_nvidia:
        severity = Severity.INFO
        why = "On one GPU, this strategy helps only if it offloads to the CPU."
    yield RULE.diagnostic(
        f"`strategy: {strategy}` is for several GPUs, but the target has {devices_text}",
        ("training", "strategy"),
        severity=severity,
        why=why,
        help="set `strategy: none`, or request more GPUs",
        related=related_at(device.gpu_route, "requested here"),
        fix=replace_fix("set `strategy: none`", ("training", "strategy"), "none"),
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
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: «fsdp»}\n",
        'gpu: none\npython: "3.11"\npackages: [torch]\ntraining: {strategy: «ddp»}\n',
        'gpu: mps\npython: "3.11"\npackages: [torch]\nplatforms: [macos-arm64]\n'
        "training: {strategy: «ddp»}\n",
        example(
            'gpu: L4\npython: "3.11"\npackages: [setuptools, '
            "torch, {name: deepspeed, build: true}]\n"
            "training: {strategy: «deepspeed-zero2»}\n",
            other_ids=("TRN019",),
        ),
    ),
    good=examples(
        example_job("training: {strategy: ddp}\n", replicas="2"),
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: fsdp}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: fsdp}\n"
        "targets: {here: {kind: local}, big: {kind: workbench, project: p, zones: "
        "[us-central1-a], gpu: L4:4}}\n",
    ),
)
