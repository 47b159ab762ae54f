"""Multiplies two matrices of fp8 on the card, and the same numbers in float64. Exit 1 while it raises or they differ by more than CASE says, 0 when not."""

import sys

import torch

CASE = {"CASE": "HERE"}

if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 9):
    print(f"torch {torch.__version__} sees no card with fp8 (compute capability 8.9 or more)")
    sys.exit(2)
generator = torch.Generator().manual_seed(20)
left, right = (torch.randn((256, 512), generator=generator).to(torch.float8_e4m3fn) for _ in range(2))
one = torch.tensor(1.0, device="cuda")
operands, functional = (left.to("cuda"), right.to("cuda").t()), torch.nn.functional
if hasattr(functional, "scaled_mm"):
    whole = functional.ScalingType.TensorWise
    result = functional.scaled_mm(*operands, one, whole, one, whole, output_dtype=torch.bfloat16)
else:
    result = torch._scaled_mm(*operands, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
truth = left.double() @ right.double().t()
apart = (result.double().cpu() - truth).abs()
error, element = float(apart.norm() / truth.norm()), float(apart.max() / truth.pow(2).mean().sqrt())
print(f"fp8: relative error {error:.3g}, worst element {element:.3g}; at most {CASE['bound']:g} and ten times it wanted")
sys.exit(not (error <= CASE["bound"] and element <= 10 * CASE["bound"]))
