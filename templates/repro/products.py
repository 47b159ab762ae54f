"""Multiplies matrices whose product is known, in each format of CASE, twice. Exit 1 while an error is above its bound or bits differ, else 0."""

import sys

import torch

CASE = {"CASE": "HERE"}

device = "cuda" if torch.cuda.is_available() and CASE["device"] == "cuda" else "cpu"
generator = torch.Generator().manual_seed(20)
operands = torch.randn(512, 1024, generator=generator), torch.randn(1024, 512, generator=generator)
wrong = 0
for name, bound in CASE["bounds"].items():
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[name]
    left, right = (operand.to(kind) for operand in operands)
    truth = left.double() @ right.double()
    result, again = (left.to(device) @ right.to(device) for _ in range(2))
    error = float((result.double().cpu() - truth).norm() / truth.norm())
    same = torch.equal(result, again)
    print(f"{name} on {device}: relative error {error:.3g}, at most {bound:g} wanted; the same product twice gives {'the same' if same else 'other'} bits")
    wrong += not error <= bound or not same
sys.exit(wrong > 0)
