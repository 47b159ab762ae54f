"""Allocates as much GPU memory as CASE requires, writes words into it and reads them back.

Exits 1 if that fails or words differ, 0 if everything works, 2 without a GPU.
"""

import sys

import torch

CASE = {"CASE": "HERE"}
BLOCK = min(1 << 30, max(CASE["bytes"], 8))

if not torch.cuda.is_available():
    print(f"torch {torch.__version__} does not see a GPU")
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
gib = {name: size / 2**30 for name, size in (("free", free), ("total", total))}
print(f"{gib['free']:.4g} of {gib['total']:.4g} GiB are free, {CASE['free'] / 2**30:.4g} required")
print(f"{allocated / 2**30:.4g} of {CASE['bytes'] / 2**30:.4g} GiB allocated; {errors} words differ")
if CASE["words"] and not allocated:
    sys.exit(2)
too_small = not CASE["words"] and allocated < CASE["bytes"]
sys.exit(errors > 0 or free < CASE["free"] or too_small)
