"""Looks in the kernel's log for errors of a card (NVRM: Xid) that CASE lists. Exit 1 while there is one since the machine started, 0 when there is none."""

import re
import subprocess
import sys

CASE = {"CASE": "HERE"}

try:
    done = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace", check=True)
except (OSError, subprocess.CalledProcessError) as error:
    print(f"the kernel's log cannot be read here (it takes root, and is not in containers): {error}")
    sys.exit(2)
lines = [line for line in done.stdout.splitlines() if (found := re.search(r"NVRM: Xid \([^)]*\): (\d+)", line)) and int(found[1]) in CASE["fatal"]]
print("\n".join(lines) or "no fault of a card in the kernel's log")
sys.exit(bool(lines))
