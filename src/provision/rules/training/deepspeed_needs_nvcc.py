"""DeepSpeed compiles operators at first use, and no target provides nvcc.

## What it does

If `strategy` is a DeepSpeed strategy and a target has an NVIDIA GPU, looks for a CUDA toolkit on
that target: `cuda_toolkit`, or the toolkit of a Colab runtime.

## Why

The fused and CPU optimizers (FusedAdam, and DeepSpeedCPUAdam if the optimizer is offloaded) and
asynchronous I/O are not part of the package: nvcc for torch's major CUDA version compiles them on
the machine, with ninja and a host compiler. ZeRO with a torch optimizer does not need them.

## How to fix

Install the CUDA toolkit for the wheels' CUDA version on the device, or use a torch optimizer
(`zero_allow_untested_optimizer` in DeepSpeed's configuration).
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.rules.source_builds import nvcc_at


def _check(context: LintContext) -> Findings:
    strategy = context.spec.training.strategy
    if context.resolved is not None or not strategy.startswith("deepspeed"):
        return
    cudas = [
        target.gpu_settings.cuda
        for target in context.targets
        if target.gpu_settings.is_nvidia and nvcc_at(context, target) is None
    ]
    if not cudas:
        return
    versions = [cuda for cuda in cudas if cuda not in ("auto", "none")]
    toolkit = "the CUDA toolkit of the version that torch is built for"
    if versions:
        toolkit = f"the CUDA toolkit {versions[0]}"
    yield RULE.diagnostic(
        f"`strategy: {strategy}` may need nvcc: DeepSpeed compiles its own optimizers on first use",
        ("training", "strategy"),
        why=(
            "FusedAdam, DeepSpeedCPUAdam (for offloading) and asynchronous I/O are compiled on "
            "the machine; torch optimizers do not need nvcc."
        ),
        help=f"install {toolkit} on the device, or use a torch optimizer",
    )


RULE = Rule(
    id="TRN019",
    name="deepspeed-needs-nvcc",
    severity=Severity.INFO,
    sources=("deepspeedai/DeepSpeed, op_builder/builder.py",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4:2\ncuda: "12.8"\npython: "3.11"\npackages: ["transformers[deepspeed]>=5"]\n'
        "training: {strategy: «deepspeed-zero2», arguments: {deepspeed: zero.json}}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[deepspeed]>=5"]\n'
        "training: {strategy: «deepspeed-zero3», launcher: accelerate}\n",
    ),
    good=examples(
        'gpu: L4:2\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.11"\n'
        'packages: ["transformers[deepspeed]>=5"]\n'
        "training: {strategy: deepspeed-zero2, arguments: {deepspeed: zero.json}}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: ddp}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[deepspeed]>=5"]\n'
        "training: {strategy: deepspeed-zero2}\n",
    ),
)
