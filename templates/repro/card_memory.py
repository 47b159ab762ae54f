"""Holds as much of the card's memory as CASE says, writes words into it and reads them back. Exit 1 while it cannot or they differ, 0 when all is well."""

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
blocks, wrong = [], 0
try:
    while (len(blocks) + 1) * BLOCK <= CASE["bytes"]:
        blocks.append(torch.empty(BLOCK // 8, dtype=torch.int64, device="cuda"))
except torch.cuda.OutOfMemoryError as error:
    print(str(error).split(". ")[0])
held = len(blocks) * BLOCK
for word in CASE["words"]:
    for block in blocks:
        block.fill_(word)
    wrong += sum(int((block != word).sum()) for block in blocks)
if CASE["words"]:
    for place, block in enumerate(blocks):
        torch.arange(place * len(block), (place + 1) * len(block), out=block)
    for place, block in enumerate(blocks):
        # In parts: the numbers to compare with need memory of their own.
        for start in range(0, len(block), max(1, len(block) // 8)):
            part, first = block[start : start + max(1, len(block) // 8)], place * len(block) + start
            wrong += int((part != torch.arange(first, first + len(part), device=block.device)).sum())
print(f"{free:,} of {total:,} bytes are free, {CASE['free']:,} wanted; {held:,} of {CASE['bytes']:,} bytes held; {wrong} words differ")
if CASE["words"] and not held:
    sys.exit(2)
sys.exit(wrong > 0 or free < CASE["free"] or (not CASE["words"] and held < CASE["bytes"]))
