"""Multiplies matrices whose product is known, in each format of CASE, twice. Exit 1 while an error is above its bound or bits differ, else 0."""

import sys

import torch

CASE = {"CASE": "HERE"}
KINDS = {"fp32": (torch.float32, 1.3e-6), "bf16": (torch.bfloat16, 1.6e-2), "fp16": (torch.float16, 1e-3)}

device = CASE["device"]
if device == "cuda" and not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
if CASE["card"]:
    torch.cuda.set_device(CASE["card"])
wrong = 0
for name, bound in CASE["bounds"].items():
    for rows, depth in CASE["sizes"]:
        generator, (kind, relative) = torch.Generator().manual_seed(20), KINDS[name]
        left, right = (torch.randn(shape, generator=generator).to(kind) for shape in ((rows, depth), (depth, rows)))
        truth = left[:: rows // 64].double() @ right.double()
        result, again = (left.to(device) @ right.to(device) for _ in range(2))
        apart = (result[:: rows // 64].double().cpu() - truth).abs()
        error, outside = float(apart.norm() / truth.norm()), int((apart > 1e-5 * depth**0.5 + relative * truth.abs()).sum())
        same = torch.equal(result, again)
        told = f"relative error {error:.3g}, at most {bound:g} wanted; {outside} elements are far off; twice gives {'the same' if same else 'other'} bits"
        print(f"{name} on {device}, {rows} x {depth}: {told}")
        # In tf32 single elements of fp32 products are far off, and are meant to be.
        wrong += not error <= bound or not same or (outside > 0 and (name != "fp32" or bound < 1e-3))
sys.exit(wrong > 0)
