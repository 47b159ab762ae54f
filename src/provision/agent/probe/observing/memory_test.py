"""Memory test: fills a device's memory with patterns and counts wrong words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PATTERNS = (0x00, -0x5555555555555556, 0x5555555555555555, -1)
"""Words of 8 bytes 00, AA, 55 and FF: each bit is tried in both states and next to bits of the
other state. Source: DCGM 4.6, memory test.
"""
_WORD = 8


def allocate_blocks(device: str, most: int, block: int) -> list[Any]:
    """Allocate blocks of `block` bytes (a multiple of 8) up to `most`, or all that is free."""
    import torch

    blocks: list[Any] = []
    while (len(blocks) + 1) * block <= most:
        try:
            blocks.append(torch.empty(block // _WORD, dtype=torch.int64, device=device))
        except RuntimeError as error:
            if "memory" not in str(error):
                raise
            break
    return blocks


def count_wrong_words(blocks: Sequence[Any]) -> int:
    """Return how many 8-byte words differ: all blocks are written before the first is read."""
    wrong = 0
    for pattern in PATTERNS:
        fill_blocks(blocks, pattern)
        wrong += count_differing_words(blocks, pattern)
    write_addresses(blocks)
    return wrong + count_misplaced_words(blocks)


def fill_blocks(blocks: Sequence[Any], pattern: int) -> None:
    """Fill all blocks with one word."""
    for block in blocks:
        block.fill_(pattern)


def count_differing_words(blocks: Sequence[Any], pattern: int) -> int:
    """Return how many words are not the pattern."""
    return sum(int((block != pattern).sum()) for block in blocks)


def write_addresses(blocks: Sequence[Any]) -> None:
    """Write into each word its own number, which finds two addresses that lead to one cell."""
    import torch

    for position, block in enumerate(blocks):
        torch.arange(position * len(block), (position + 1) * len(block), out=block)


def count_misplaced_words(blocks: Sequence[Any]) -> int:
    """Return how many words do not hold their own number."""
    import torch

    wrong = 0
    for position, block in enumerate(blocks):
        # An eighth at a time: the numbers to compare with need memory, and most of it is in use.
        step = max(1, len(block) // 8)
        for start in range(0, len(block), step):
            part = block[start : start + step]
            first = position * len(block) + start
            wrong += int(
                (part != torch.arange(first, first + len(part), device=block.device)).sum()
            )
    return wrong
