"""CUDA_VISIBLE_DEVICES hides GPUs, or names those of a particular machine.

## What it does

Counts the devices in CUDA_VISIBLE_DEVICES and compares the count with `gpu`. If it matches, the
finding is a note that the value belongs to one machine.

## Why

An empty value or -1 hides all GPUs: torch.cuda.is_available() is False. Fewer devices than
requested leave GPUs idle. And the numbers or UUIDs of one machine mean different GPUs on the next
machine.

## How to fix

Remove the variable: `gpu` sets the number of GPUs, and a launcher gives each process its own GPU.
To select a GPU on a shared machine, set the variable when you start the program.
"""

from __future__ import annotations

import itertools

from provision.diagnostics import Severity
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at

NAME = "CUDA_VISIBLE_DEVICES"


def _check(context: LintContext) -> Findings:
    devices = [device for device in context.devices if device.is_nvidia]
    value = context.spec.env.get(NAME)
    if value is None or not devices or context.resolved is not None:
        return
    value = value.strip()
    most = max(devices, key=lambda device: device.gpu.count)
    shown = [part.strip() for part in value.split(",")]
    # The devices before the first invalid one are visible.
    shown = list(itertools.takewhile(lambda part: part and not part.startswith("-"), shown))
    severity = None
    why = (
        "The same device numbers can refer to different GPUs on different machines; `gpu` sets the "
        "number of GPUs."
    )
    help_text = f"remove {NAME}"
    if not shown:
        message = f'{NAME} is "{value}", which hides all GPUs, but {most.gpu} is requested'
        why = "torch then finds no CUDA device."
        help_text += ", or set `gpu: none`"
    elif len(shown) < most.gpu.count:
        message = f"{NAME} exposes only {len(shown)} of the {most.gpu.count} requested GPUs"
        severity = Severity.WARNING
    else:
        message = f"{NAME} is {value}, which selects a different GPU on each machine"
        severity = Severity.INFO
    yield RULE.diagnostic(
        message,
        ("env", NAME),
        severity=severity,
        why=why,
        help=help_text,
        related=related_at(most.gpu_route, "GPUs requested here"),
    )


RULE = Rule(
    id="ENV002",
    name="devices-hidden",
    severity=Severity.ERROR,
    sources=("NVIDIA, CUDA C++ Programming Guide, CUDA environment variables",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {CUDA_VISIBLE_DEVICES: «""»}\n',
        'gpu: L4:2\npython: "3.11"\npackages: [torch]\ntraining: {strategy: ddp}\n'
        'env: {CUDA_VISIBLE_DEVICES: «"0"»}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {CUDA_VISIBLE_DEVICES: «"0"»}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch]\nenv: {CUDA_VISIBLE_DEVICES: ""}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {CUDA_DEVICE_ORDER: PCI_BUS_ID}\n',
    ),
)
