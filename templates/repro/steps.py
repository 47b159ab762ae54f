"""Computes softmax, layer norm and three steps of AdamW in fp32 and in float64. Exit 1 while they differ by more than CASE says, 0 when not."""

import sys

import torch
from torch.nn.functional import layer_norm, softmax

CASE = {"CASE": "HERE"}


def stepped(values):
    weights = torch.nn.Parameter(values.clone())
    optimizer = torch.optim.AdamW([weights], lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        (weights**2).sum().backward()
        optimizer.step()
    return weights.detach()


if CASE["device"] == "cuda" and not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
start = torch.randn((64, 512), generator=torch.Generator().manual_seed(20))
wrong = 0
for name, way in {"softmax": lambda x: softmax(x, -1), "layer norm": lambda x: layer_norm(x, (512,)), "AdamW": stepped}.items():
    truth = way(start.double())
    error = float((way(start.to(CASE["device"])).double().cpu() - truth).norm() / truth.norm())
    print(f"{name} on {CASE['device']}: relative error {error:.3g}, at most {CASE['bound']:g} wanted")
    wrong += not error <= CASE["bound"]
sys.exit(wrong > 0)
