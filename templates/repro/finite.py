"""Computes into memory that was full of NaN, and takes the gradients of a small network. Exit 1 while a number of the results is NaN or infinite, else 0."""

import sys

import torch

CASE = {"CASE": "HERE"}

if CASE["device"] == "cuda" and not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
where = {"device": CASE["device"], "dtype": getattr(torch, CASE["kind"])}
one = torch.randn((64, 256), generator=torch.Generator().manual_seed(20)).to(**where)
found = {name: torch.full((64, 256), float("nan"), **where) for name in ("add", "tanh", "mul", "softmax")}
torch.add(one, one, out=found["add"])
torch.tanh(one, out=found["tanh"])
torch.mul(one, one, out=found["mul"])
torch.softmax(one, -1, out=found["softmax"])
torch.manual_seed(20)
network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.LayerNorm(128), torch.nn.GELU(), torch.nn.Linear(128, 32)).to(**where)
loss = torch.nn.functional.cross_entropy(network(one[:32, :64]), torch.arange(32, device=CASE["device"]))
loss.backward()
found |= {"loss": loss.detach(), **{f"gradient of {name}": weight.grad for name, weight in network.named_parameters()}}
wrong = {name: int((~tensor.isfinite()).sum()) for name, tensor in found.items()}
print(f"numbers that are not finite in {CASE['kind']} on {CASE['device']}: {wrong}")
sys.exit(any(wrong.values()))
