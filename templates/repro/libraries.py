"""Imports torch, multiplies, and looks where the libraries of CASE came from. Exit 1 while they are in the process, 0 when they are not. For Linux."""

import os
import sys

import torch

CASE = {"CASE": "HERE"}

torch.ones(64, 64) @ torch.ones(64, 64)
with open("/proc/self/maps") as file:
    mapped = sorted({line.split(None, 5)[5].strip() for line in file if line.count("/")})
wrong = [path for path in mapped if path in [os.path.expanduser(one) for one in CASE["libraries"]]]
runtimes = [path for path in mapped if os.path.basename(path) in CASE["openmp"]]
print("\n".join(wrong + runtimes) or "none of them is loaded")
sys.exit(bool(wrong) or len(runtimes) > 1)
