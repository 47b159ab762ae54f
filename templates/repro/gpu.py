"""Computes on each card that torch sees, and holds them against CASE: number, name, memory, capability. Exit 1 while one is otherwise, 0 when they fit."""

import re
import sys

import torch

CASE = {"CASE": "HERE"}

if not torch.cuda.is_available():
    print(f"torch {torch.__version__} (CUDA {torch.version.cuda}) sees no card: torch.cuda.is_available() is False")
    sys.exit(2 if CASE["count"] is None else 1)  # a card of which nothing is known, or the one that is missing
wrong = []
for index in range(torch.cuda.device_count()):
    card = torch.cuda.get_device_properties(index)
    print(f"{index}: {card.name}, compute capability {card.major}.{card.minor}, {card.total_memory:,} bytes; torch has code for {torch.cuda.get_arch_list()}")
    if not all(word in re.split(r"[^a-z0-9]+", card.name.lower()) for word in re.split(r"[^a-z0-9]+", (CASE["name"] or "").lower()) if word):
        wrong.append(f"the card is {card.name}, wanted is {CASE['name']}")
    if card.total_memory < (CASE["least_bytes"] or 0):
        wrong.append(f"the card has {card.total_memory:,} bytes, wanted are {CASE['least_bytes']:,}")
    if card.total_memory > (CASE["most_bytes"] or card.total_memory):
        wrong.append(f"the card has {card.total_memory:,} bytes, wanted are at most {CASE['most_bytes']:,}")
    if [card.major, card.minor] < (CASE["capability"] or []):
        wrong.append(f"wanted is compute capability {'.'.join(map(str, CASE['capability']))}")
    # A card for which torch has no code is only found out by the first kernel.
    assert torch.ones(1000, device=f"cuda:{index}").sum().item() == 1000
if CASE["count"] not in (None, torch.cuda.device_count()):
    wrong.append(f"torch sees {torch.cuda.device_count()} cards, wanted are {CASE['count']}")
print("\n".join(wrong) or "the cards are as declared, and compute")
sys.exit(bool(wrong))
