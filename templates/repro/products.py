"""Multiplies matrices whose product is known, in each format of CASE, twice.

Exits 1 while an error is above its bound or the two products differ, else 0.
"""

import sys

import torch

CASE = {"CASE": "HERE"}
FORMATS = {
    "fp32": (torch.float32, 1.3e-6),
    "bf16": (torch.bfloat16, 1.6e-2),
    "fp16": (torch.float16, 1e-3),
}

device = CASE["device"]
if device == "cuda" and not torch.cuda.is_available():
    print(f"torch {torch.__version__} does not see a GPU")
    sys.exit(2)
if CASE["card"]:
    torch.cuda.set_device(CASE["card"])
failures = 0
for name, bound in CASE["bounds"].items():
    dtype, relative = FORMATS[name]
    for rows, depth in CASE["sizes"]:
        generator = torch.Generator().manual_seed(20)
        left = torch.randn((rows, depth), generator=generator).to(dtype)
        right = torch.randn((depth, rows), generator=generator).to(dtype)
        step = rows // 64
        expected = left[::step].double() @ right.double()
        first, second = (left.to(device) @ right.to(device) for _ in range(2))
        difference = (first[::step].double().cpu() - expected).abs()
        error = float(difference.norm() / expected.norm())
        outliers = int((difference > 1e-5 * depth**0.5 + relative * expected.abs()).sum())
        repeats = torch.equal(first, second)
        print(f"{name} on {device}, {rows} x {depth}: relative error {error:.3g}, limit {bound:g};")
        print(f"  {outliers} outliers; the second product is {'equal' if repeats else 'different'}")
        # In tf32 single elements of fp32 products are far off, as intended.
        judges_outliers = name != "fp32" or bound < 1e-3
        failures += not error <= bound or not repeats or (judges_outliers and outliers > 0)
sys.exit(failures > 0)
