"""More GPU memory is required than the GPU has.

## What it does

Compares `requires.vram` with the memory of the GPU, and tolerates the tenth that the driver and
error correction reserve.

## Why

The verification checks the GPU memory on the device, and would fail.

## How to fix

Use a GPU with that much memory, or require less.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.memory.capacity import GIB, format_size, unmet_sizes
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_at

USABLE_VRAM_SHARE = 0.9
"""Share of the required memory that is enough: driver and error correction reserve a part.

Check D04 uses the same share on the device (a test compares the two). Our choice.
"""


def _check(context: LintContext) -> Findings:
    unmet = unmet_sizes(context, "vram", usable_share=USABLE_VRAM_SHARE)
    for _, required, vram in unmet:
        least = required.bytes * USABLE_VRAM_SHARE
        larger = [
            card for card in context.facts.cards if card.gcp and card.memory_gb * GIB >= least
        ]
        available = format_size(vram.bytes)
        help_text = f"require at most {available}"
        if larger:
            help_text += f", or use {min(larger, key=lambda card: card.memory_gb).name}"
        yield RULE.diagnostic(
            f"{required.text} of GPU memory is required, but {vram.provider} has {available}",
            required.route,
            evidence=vram.evidence,
            why="Verification on that machine would fail.",
            help=help_text,
            related=related_at(vram.route, "GPU requested here"),
        )


RULE = Rule(
    id="MEM002",
    name="vram-beyond-card",
    severity=Severity.ERROR,
    sources=("NVIDIA product pages; nvidia-smi output from Colab machines",),
    check=_check,
    bad=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {vram: «24GiB»}\n',
        example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\n'
            "targets: {colab: {kind: colab, gpu: T4, requires: {vram: «17GiB»}}}\n",
            other_ids=("IMG020",),
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 16GiB}\n',
        'gpu: L4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 24GiB}\n',
    ),
)
