"""More GPU memory is required than the card has.

## What it does

Compares `requires.vram` with the memory of the card, and allows the tenth that driver and error
correction keep.

## Why

The verification compares the same numbers on the device, and would fail there.

## How to fix

Take a card with that much memory, or require what the work needs.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.memory.capacity import GIB, format_size, unmet_sizes, vram_capacity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at

USABLE_VRAM_SHARE = 0.9
"""Share of the required memory that is enough: driver and error correction keep a part.

Check D04 uses the same share on the device (a test compares the two). Our choice.
"""


def _check(context: LintContext) -> Findings:
    unmet = unmet_sizes(context, "vram", vram_capacity, usable_share=USABLE_VRAM_SHARE)
    for _, required, vram in unmet:
        least = required.bytes * USABLE_VRAM_SHARE
        larger = [
            card for card in context.facts.cards if card.gcp and card.memory_gb * GIB >= least
        ]
        available = format_size(vram.bytes)
        help_text = f"require at most {available}"
        if larger:
            help_text += f", or take {min(larger, key=lambda card: card.memory_gb).name}"
        yield RULE.diagnostic(
            f"vram: {required.text} is required, and {vram.provider} has {available}",
            required.route,
            evidence=vram.evidence,
            why="The verification would fail on the device.",
            help=help_text,
            related=related_at(vram.route, "card asked for here"),
        )


RULE = Rule(
    id="MEM002",
    name="vram-beyond-card",
    severity=Severity.ERROR,
    sources=("NVIDIA product pages; nvidia-smi of Colab machines",),
    check=_check,
    bad=(
        Example('gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 24GiB}\n', "24GiB"),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntargets: {colab: {kind: colab, '
            "gpu: T4, requires: {vram: 17GiB}}}\n",
            "17GiB",
            other_ids=("IMG020",),
        ),
    ),
    good=examples(
        'gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 16GiB}\n',
        'gpu: L4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 24GiB}\n',
    ),
)
