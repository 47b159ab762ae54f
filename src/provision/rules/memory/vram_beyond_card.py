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

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.rules.memory.capacity import GIB, format_size, required_size, vram_capacity
from provision.rules.rule import Example, LintContext, Rule, related_at

USABLE_VRAM_SHARE = 0.9
"""How much of what is required will do, as check D04 has it on the device (a test compares the
two): driver and error correction keep a part.
"""
"""Of what is required: the share that the verification takes as enough, as a card of 80 GB shows
79.1 GiB. Our choice.
"""


def check(context: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each requirement that a card does not meet."""
    for target in context.targets:
        need, room = required_size(context, target, "vram"), vram_capacity(context, target)
        if need is None or room is None or room.bytes >= need.bytes * USABLE_VRAM_SHARE:
            continue
        enough = min(
            (
                card
                for card in context.facts.cards
                if card.gcp and card.memory_gb * GIB >= need.bytes * USABLE_VRAM_SHARE
            ),
            key=lambda card: card.memory_gb,
            default=None,
        )
        yield RULE.diagnostic(
            f"vram: {need.text} is required, and {room.provider} has {format_size(room.bytes)}",
            need.route,
            severity=room.at_most(Severity.ERROR),
            why="The verification would fail on the device.",
            help=f"require at most {format_size(room.bytes)}"
            + (f", or take {enough.name}" if enough else ""),
            related=(related_at(room.route, "card asked for here"),),
        )


RULE = Rule(
    id="MEM002",
    name="vram-beyond-card",
    severity=Severity.ERROR,
    sources=("NVIDIA product pages; nvidia-smi of Colab machines",),
    check=check,
    bad=(
        Example('gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 24GiB}\n', "24GiB"),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntargets: {colab: {kind: colab, '
            "gpu: T4, requires: {vram: 17GiB}}}\n",
            "17GiB",
            other_ids=("IMG020",),
        ),
    ),
    good=(
        Example('gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 16GiB}\n'),
        Example('gpu: L4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 24GiB}\n'),
    ),
)
