"""`provision lint` of 1,000 specs next to check-jsonschema, on all cores and on one."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

from benchmarks.timing import Call, Cost, Unmeasured, alternate, cost
from benchmarks.workshop import ROOT, Workshop

_COUNT = 1000


def lint(workshop: Workshop) -> tuple[Cost, Cost]:
    """As a user starts it, on all cores that this process may use."""
    ours, theirs = _calls(workshop)
    return alternate(lambda: cost(ours), lambda: cost(theirs), rounds=5)


def lint_on_one_core(workshop: Workshop) -> tuple[Cost, Cost]:
    """The same where only one core may be used, as in many containers."""
    if shutil.which("taskset") is None:
        raise Unmeasured("taskset (util-linux) is not installed")
    core = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    ours, theirs = (replace(call, argv=(*core, *call.argv)) for call in _calls(workshop))
    return alternate(lambda: cost(ours), lambda: cost(theirs), rounds=5)


def _calls(workshop: Workshop) -> tuple[Call, Call]:
    """Return both calls on copies of six specs, which differ in packages, targets and training."""
    folder = workshop.folder / "many-specs"
    if not folder.exists():
        folder.mkdir()
        originals = sorted((ROOT / "specs").glob("*.yaml"))
        for number in range(_COUNT):
            shutil.copy(originals[number % len(originals)], folder / f"{number:04}.yaml")
    specs = sorted(str(path) for path in folder.iterdir())
    schema = ROOT / "docs" / "spec.schema.json"
    return (
        workshop.script("provision", "lint", *specs),
        workshop.script("check-jsonschema", "--schemafile", str(schema), *specs),
    )
