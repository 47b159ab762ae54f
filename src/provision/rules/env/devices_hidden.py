"""CUDA_VISIBLE_DEVICES hides cards, or names those of one machine.

## What it does

Counts the devices in CUDA_VISIBLE_DEVICES and compares them with `gpu`. If the count fits, it only
notes that the value belongs to one machine.

## Why

An empty value or -1 hides all cards: torch.cuda.is_available() is False. Fewer than requested leave
cards idle. And numbers or UUIDs of one machine mean other cards on the next.

## How to fix

Remove it: `gpu` gives the number of cards, and a launcher gives each process its own card. To
choose a card on a shared machine, set the variable when you start the program.
"""

from __future__ import annotations

import itertools

from provision.diagnostics import Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at

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
    why = "What it names depends on the machine; gpu says how many cards there are."
    help_text = f"take {NAME} out"
    if not shown:
        message = f'{NAME} is "{value}", which hides all cards, and {most.gpu} is asked for'
        why = "torch then finds no CUDA device."
        help_text += ", or write gpu: none"
    elif len(shown) < most.gpu.count:
        message = f"{NAME} shows {len(shown)} of the {most.gpu.count} cards that are asked for"
        severity = Severity.WARNING
    else:
        message = f"{NAME} is {value}, which means other cards on every machine"
        severity = Severity.INFO
    yield RULE.diagnostic(
        message,
        ("env", NAME),
        severity=severity,
        why=why,
        help=help_text,
        related=related_at(most.gpu_route, "cards asked for here"),
    )


RULE = Rule(
    id="ENV002",
    name="devices-hidden",
    severity=Severity.ERROR,
    sources=("NVIDIA, CUDA C++ Programming Guide, CUDA environment variables",),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {CUDA_VISIBLE_DEVICES: ""}\n', '""'
        ),
        Example(
            'gpu: L4:2\npython: "3.11"\npackages: [torch]\ntraining: {strategy: ddp}\nenv: '
            '{CUDA_VISIBLE_DEVICES: "0"}\n',
            '"0"',
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {CUDA_VISIBLE_DEVICES: "0"}\n', '"0"'
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch]\nenv: {CUDA_VISIBLE_DEVICES: ""}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {CUDA_DEVICE_ORDER: PCI_BUS_ID}\n',
    ),
)
