"""Times copies on the card (GB/s), copies to and from it (GB/s), and products (TFLOP/s). Exit 1 while one is slower than CASE says, 0 when none is."""

import sys
from itertools import pairwise

import torch

CASE = {"CASE": "HERE"}
SIZE, KINDS = 8192, {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}


def seconds(action, rounds=11):
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(rounds + 4)]
    for mark in marks:
        action()
        mark.record()
    torch.cuda.synchronize()
    return sorted(one.elapsed_time(other) / 1000 for one, other in pairwise(marks[3:]))[rounds // 2]


def measured(what):
    if what in ("copies", "moves"):
        count = min(4 << 30 if what == "copies" else 1 << 30, torch.cuda.mem_get_info()[0] // 4)
        there = torch.randint(0, 256, (count,), dtype=torch.uint8, device="cuda")
        other = torch.empty_like(there) if what == "copies" else torch.empty(count, dtype=torch.uint8, pin_memory=True)
        pair = (seconds(lambda: other.copy_(there, non_blocking=True)), seconds(lambda: there.copy_(other, non_blocking=True)))
        return 2 * count / pair[0] / 1e9 if what == "copies" else count / max(pair) / 1e9
    left, right, one = *(torch.randn(SIZE, SIZE, device="cuda").to(KINDS.get(what, torch.float32)) for _ in range(2)), torch.tensor(1.0, device="cuda")
    torch.set_float32_matmul_precision("high" if what == "tf32" else "highest")
    short = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16}
    return 2 * SIZE**3 / seconds(lambda: torch._scaled_mm(left, right.t(), **short) if what == "fp8" else left @ right) / 1e12


if not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
if CASE["card"]:
    torch.cuda.set_device(CASE["card"])
found = {what: measured(what) for what in CASE["least"]}
print(torch.cuda.get_device_name(), {what: f"{speed:.4g}, at least {CASE['least'][what]:.4g} wanted" for what, speed in found.items()})
sys.exit(not all(speed >= CASE["least"][what] for what, speed in found.items()))
