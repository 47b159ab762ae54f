"""Lets NVIDIA's DCGM diagnose the cards, at the level of CASE. Exit 1 while one of its tests fails or warns, 0 when none does."""

import json
import subprocess
import sys

CASE = {"CASE": "HERE"}


def results(part, test=""):
    if isinstance(part, list):
        for one in part:
            yield from results(one, test)
    if isinstance(part, dict):
        test = part.get("name") or test
        if test and isinstance(part.get("status"), str):
            yield test, part["status"], part.get("warnings") or part.get("info") or ""
        for one in part.values():
            yield from results(one, test)


try:
    told = subprocess.run(["dcgmi", "diag", "-r", str(CASE["level"]), "-j"], capture_output=True, text=True, check=False, timeout=600).stdout
    found = list(results(json.loads(told[told.index("{") :])))
except (OSError, ValueError, subprocess.TimeoutExpired) as error:
    print(f"dcgmi gives no result: {error}")
    sys.exit(2)
wrong = [f"{test}: {status} {why}" for test, status, why in found if status.lower().startswith(("fail", "warn", "error"))]
print("\n".join(wrong) or f"{len(found)} results, none is wrong")
sys.exit(bool(wrong) if found else 2)
