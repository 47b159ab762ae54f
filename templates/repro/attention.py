"""Computes causal attention by each backend of torch alone. CASE says what is asked: that one is fast, that math runs, or that all are right. Exit 1 or 0."""

import sys
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

CASE = {"CASE": "HERE"}
BACKENDS = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def error(backend, head):
    generator = torch.Generator().manual_seed(20)
    parts = [torch.randn((2, 4, 128, head), generator=generator).to(getattr(torch, CASE["kind"])) for _ in range(3)]
    with sdpa_kernel([SDPBackend.MATH]):
        truth = scaled_dot_product_attention(*(part.double() for part in parts), is_causal=True)
    with sdpa_kernel([backend]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = scaled_dot_product_attention(*(part.to(CASE["device"]) for part in parts), is_causal=True)
    return float((result.double().cpu() - truth).norm() / truth.norm())


if CASE["device"] == "cuda" and not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
found = {}
for name, backend in BACKENDS.items():
    try:
        found[name] = [error(backend, head) for head in (64, 128)]
    except RuntimeError:
        continue  # a backend that cannot compute this says so
print(f"relative errors in {CASE['kind']} on {CASE['device']}, by backend: {found or 'none can'}")
right = "math" in found and all(one <= CASE["times"] * max(found["math"]) for errors in found.values() for one in errors)
sys.exit(not {"math": "math" in found, "fast": len(found) > 1, "right": right}[CASE["wanted"]])
