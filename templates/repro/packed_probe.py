"""Runs one check with the probe that is packed below; CASE has the check and its expectations.

Exits 1 if the check fails, 0 if it passes, 2 if it could not be observed.
Start it with the environment's Python, in the same way as the training.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import zlib

CASE = {"CASE": "HERE"}
PROBE = """
PROBE HERE
"""


def run_probe(folder):
    probe, expectations, report = (
        os.path.join(folder, name) for name in ("probe.pyz", "expectations.json", "report.json")
    )
    with open(probe, "wb") as file:
        file.write(zlib.decompress(base64.b64decode(PROBE)))
    with open(expectations, "w", encoding="utf-8") as file:
        json.dump(CASE["expectations"], file)
    argv = [sys.executable, probe, "verify", "--expectations", expectations, "--out", report]
    subprocess.run([*argv, "--only", CASE["check"]], stdout=subprocess.DEVNULL, check=False)
    if not os.path.exists(report):
        return None
    with open(report, encoding="utf-8") as file:
        checks = json.load(file)["checks"]
    return next(check for check in checks if check["id"] == CASE["check"])


for part in ("paths", "env"):
    values = CASE["expectations"][part]
    for name, value in values.items():
        values[name] = os.path.expandvars(os.path.expanduser(value))
with tempfile.TemporaryDirectory() as folder:
    check = run_probe(folder)
if check is None:
    sys.exit(2)
print(f"{check['id']} {check['title']}: {check['status']}: {check['message']}")
sys.exit({"pass": 0, "fail": 1, "warn": 1}.get(check["status"], 2))
