"""Asks nvidia-smi whether a card is split (MIG), closed to other programs, or held below its power. Exit 1 while one is, 0 when none is."""

import subprocess
import sys

CASE = {"CASE": "HERE"}
FIELDS = "mig.mode.current,compute_mode,power.limit,power.default_limit"


def watts(text):
    return float(text) if text.replace(".", "").isdigit() else None


print(CASE["about"])
try:
    done = subprocess.run(["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True)
except (OSError, subprocess.CalledProcessError) as error:
    print(f"nvidia-smi tells nothing: {error}")
    sys.exit(2)
wrong = 0
for line in done.stdout.splitlines():
    mig, mode, limit, usual = (cell.strip() for cell in line.split(","))
    lowered = watts(limit) is not None and watts(usual) is not None and int(watts(limit)) < int(watts(usual))
    print(f"MIG: {mig}; compute mode: {mode}; power limit: {limit} W of {usual} W")
    wrong += mig == "Enabled" or mode in ("Prohibited", "Exclusive_Process") or lowered
sys.exit(wrong > 0)
