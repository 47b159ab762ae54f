"""The promises about instances of Vertex AI Workbench, measured on the sandbox: what our side costs, and how soon an environment is in place."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.timing import Cost, Unmeasured, alternate, cost, total
from benchmarks.workshop import Workshop
from provision.sandbox.boot import Booter

_SPEC = """gpu: none
python: "{python}"
packages: [{packages}]
training: {{framework: none}}
targets:
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
    max_lifetime: 8h
"""


def apply(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure one `provision apply --sandbox` on a new project, and the calls of uv in it made by hand.

    The cost is that of the process and the children it waited for. It waits for no device: what runs there is not in it. The services of the sandbox are:
    they run in the same process.
    """
    _isolated(workshop)
    words = ("apply", str(_project(workshop, "workbench-recorded", "safetensors")), "--sandbox", "--yes")
    replay = workshop.recorded("workbench", *words)

    def ours() -> Cost:
        return cost(workshop.script("provision", "apply", str(_project(workshop, "workbench", "safetensors")), "--sandbox", "--yes"))

    return alternate(ours, lambda: total(replay.prepare()), rounds=5)


def _isolated(workshop: Workshop) -> None:
    """Raise Unmeasured where this machine can isolate no device."""
    if why := Booter(workshop.folder).impossible():
        raise Unmeasured(f"a device of the sandbox needs an isolated root: {why}")


def _project(workshop: Workshop, name: str, packages: str) -> Path:
    spec = workshop.project(name, locked=False)
    spec.write_text(_SPEC.format(python=f"{sys.version_info.major}.{sys.version_info.minor}", packages=packages))
    return spec
