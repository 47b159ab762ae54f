"""The accelerator exists, but it is not an NVIDIA card.

## What it does

Looks up the name among the accelerators of AMD, Google, Intel, AWS and Huawei that the facts list
by family.

## Why

torch is locked as a CPU or a CUDA build. Neither uses these accelerators: the lock would install
CUDA packages that no device there can run, and the probe measures only NVIDIA cards.

## How to fix

Set an NVIDIA GPU, or `gpu: none` if the work also runs on the CPU of such a machine.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    gpus = {device.gpu_route: device.gpu for device in context.devices if device.is_nvidia}
    for route, gpu in gpus.items():
        known = context.facts.unsupported_accelerator(gpu.type)
        if known is None:
            continue
        is_short = context.source.text(route) is not None
        yield RULE.diagnostic(
            f"{gpu.type} ({known.family}) is not supported",
            route if is_short else (*route, "type"),
            evidence=known.evidence,
            why=(
                f"PyTorch needs {known.needs} for it, but the lock can only choose CPU and CUDA "
                "builds."
            ),
            help=(
                "set `gpu` to an NVIDIA GPU listed by `provision facts list gpus`, or to "
                "`none` to use the CPU"
            ),
        )


RULE = Rule(
    id="GPU011",
    name="accelerator-not-supported",
    severity=Severity.ERROR,
    sources=(
        "pytorch.org, get started: builds for CUDA, ROCm and CPU",
        "google-cloud-aiplatform accelerator_type.py",
        "googlecolab/google-colab-cli",
    ),
    check=_check,
    bad=examples(
        'gpu: «TPU-v5e»\npython: "3.12"\npackages: [torch]\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        'gpu: «v6e1»\npython: "3.12"\npackages: [torch]\n',
        'gpu: {type: «AMD Instinct MI300X», count: 8}\npython: "3.12"\npackages: [torch]\n',
        'gpu: «Radeon RX 7900 XTX»\npython: "3.12"\npackages: [torch]\n',
        'gpu: «Intel Data Center GPU Max 1550»\npython: "3.12"\npackages: [torch]\n',
        'gpu: «Gaudi2:8»\npython: "3.12"\npackages: [torch]\n',
        'gpu: «trn1»\npython: "3.12"\npackages: [torch]\n',
    ),
    good=examples(
        'gpu: NVIDIA A100-SXM4-80GB\npython: "3.12"\npackages: [torch]\n',
        'gpu: none\npython: "3.12"\npackages: [torch]\n',
    ),
)
