"""What the probe costs beside what it measures, and what looking alone costs, in an environment
with torch that was made and verified.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.timing import Call, Cost, Unmeasured, cost, median, repeat
from benchmarks.workshop import ROOT, Workshop

_ROUNDS = 5


def keras(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """`provision verify` of specs/keras.yaml on the CPU, whose environment is made before."""
    spec = workshop.project("keras", locked=False)
    spec.write_text((ROOT / "specs" / "keras.yaml").read_text())
    cost(workshop.script("provision", "apply", str(spec), "--yes"))
    return cost(workshop.script("provision", "verify", str(spec))), None


def env(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """`provision env`, seen from the environment with torch in it."""
    return repeat(
        lambda: cost(workshop.script("provision", "env", "--python", str(_python(workshop)))),
        _ROUNDS,
    ), None


def inventory(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """The probe by itself, with nothing but what looks and imports nothing."""
    call, _ = _probe(workshop, "inventory")
    return repeat(lambda: cost(call), _ROUNDS), None


def overhead(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """The probe's whole run beside what its checks took while they were observed, imports included."""  # noqa: E501
    call, report = _probe(workshop, "quick")
    ours, checks = [], []
    for _ in range(3):
        ours.append(cost(call))
        seconds = [check.get("seconds", 0.0) for check in json.loads(report.read_bytes())["checks"]]
        checks.append(Cost(sum(seconds), 0))
    return median(ours), median(checks)


def _python(workshop: Workshop) -> Path:
    return workshop.applied.parent / ".provision/envs/spec.local/bin/python"


def _probe(workshop: Workshop, tier: str) -> tuple[Call, Path]:
    """Return the call of the probe that last verified the environment, at another tier, and where
    its report goes.
    """
    stored = workshop.applied.parent / ".provision/reports/spec.local"
    folder = workshop.folder / f"probe-{tier}"
    folder.mkdir(exist_ok=True)
    asked = json.loads((stored / "expectations.json").read_bytes())
    (folder / "expectations.json").write_text(json.dumps({**asked, "tier": tier}))
    if not (stored / "probe.pyz").exists():
        raise Unmeasured(f"there is no probe in {stored}")
    report = folder / "report.json"
    words = ("verify", "--expectations", str(folder / "expectations.json"), "--out", str(report))
    variables = {
        **workshop.environment,
        **asked["env"],
        "PATH": f"{_python(workshop).parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
    }
    return Call(
        (str(_python(workshop)), str(stored / "probe.pyz"), *words), variables, folder
    ), report
