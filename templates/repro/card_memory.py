"""Allocates as much of the card's memory as CASE says, writes words into it and reads them back.

Exits 1 while it cannot or words differ, 0 when all is well, 2 without a card.
"""

import sys

import torch

CASE = {"CASE": "HERE"}
BLOCK = min(1 << 30, max(CASE["bytes"], 8))

if not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
if CASE["card"]:
    torch.cuda.set_device(CASE["card"])
free, total = torch.cuda.mem_get_info()
blocks, errors = [], 0
try:
    while (len(blocks) + 1) * BLOCK <= CASE["bytes"]:
        blocks.append(torch.empty(BLOCK // 8, dtype=torch.int64, device="cuda"))
except torch.cuda.OutOfMemoryError as error:
    print(str(error).split(". ")[0])
allocated = len(blocks) * BLOCK
for word in CASE["words"]:
    for block in blocks:
        block.fill_(word)
    errors += sum(int((block != word).sum()) for block in blocks)
if CASE["words"]:
    for index, block in enumerate(blocks):
        torch.arange(index * len(block), (index + 1) * len(block), out=block)
    for index, block in enumerate(blocks):
        # In parts: the numbers to compare with need memory too.
        size = max(1, len(block) // 8)
        for start in range(0, len(block), size):
            part, first = block[start : start + size], index * len(block) + start
            numbers = torch.arange(first, first + len(part), device=block.device)
            errors += int((part != numbers).sum())
print(f"{free:,} of {total:,} bytes are free, {CASE['free']:,} wanted")
print(f"{allocated:,} of {CASE['bytes']:,} bytes allocated; {errors} words differ")
if CASE["words"] and not allocated:
    sys.exit(2)
too_small = not CASE["words"] and allocated < CASE["bytes"]
sys.exit(errors > 0 or free < CASE["free"] or too_small)
