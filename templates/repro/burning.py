"""Multiplies for the seconds of CASE. Exit 1 while the card grows slower or NVIDIA's driver says that it slows itself down, 0 when it stays as fast."""

import subprocess
import sys
import time

import torch

CASE = {"CASE": "HERE"}
SIZE, SLOWED = 8192, 0x08 | 0x20 | 0x40 | 0x80  # nvml.h: hardware slowdown, thermal (software, hardware), power brake


def reasons():
    for name in ("clocks_event_reasons.active", "clocks_throttle_reasons.active"):
        done = subprocess.run(["nvidia-smi", f"--query-gpu={name}", "--format=csv,noheader"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return [int(line, 16) & SLOWED for line in done.stdout.split() if line.startswith("0x")]
    return []


if not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
if CASE["card"]:
    torch.cuda.set_device(CASE["card"])
kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[CASE["format"]]
left, right = (torch.randn(SIZE, SIZE, device="cuda").to(kind) for _ in range(2))
speeds, slowed, until = [], 0, time.monotonic() + CASE["seconds"]
while time.monotonic() < until or len(speeds) < 4:
    began = time.perf_counter()
    for _ in range(50):
        left @ right
    told = reasons()  # while the card still works
    torch.cuda.synchronize()
    speeds.append(50 * 2 * SIZE**3 / (time.perf_counter() - began) / 1e12)
    slowed |= max(told, default=0)
quarter = len(speeds) // 4
first, last = (sorted(part)[len(part) // 2] for part in (speeds[:quarter], speeds[-quarter:]))
print(f"{first:.4g} TFLOP/s in the first quarter, {last:.4g} in the last; reasons to slow down: {slowed:#x}")
sys.exit(slowed != 0 or last < CASE["share"] * first)
