"""Draws whole numbers from one seed twice, and from another, on the CPU and on the device. Exit 1 while a seed does not give its own numbers, else 0."""

import sys

import torch

CASE = {"CASE": "HERE"}


def drawn(device, seed):
    return torch.randint(2**31, (4096,), generator=torch.Generator(device=device).manual_seed(seed), device=device)


if CASE["device"] == "cuda" and not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
wrong = 0
for device in sorted({"cpu", CASE["device"]}):
    same, other = torch.equal(drawn(device, 20), drawn(device, 20)), torch.equal(drawn(device, 20), drawn(device, 21))
    print(f"{device}: one seed gives {'the same' if same else 'other'} numbers again, another seed {'the same' if other else 'other'} ones")
    wrong += not same or other
sys.exit(wrong > 0)
