"""The promise about jobs of Vertex AI, measured on the sandbox: what our side of an apply costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.timing import Cost, Unmeasured, cost, repeat
from benchmarks.workshop import Workshop

_SPEC = """gpu: none
python: "{python}"
packages: [safetensors]
training: {{framework: none}}
targets:
  cluster:
    kind: vertex-job
    project: my-project
    regions: [us-central1]
    bucket: gs://my-bucket/p
    replicas: 2
    machine_type: n1-standard-4
    image: docker.io/library/python@sha256:{digest}
"""


def apply(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure one `provision apply --sandbox` on a new project, up to the verified job.

    The services and the machines of the job are in another process, and are not in the cost.
    """

    def ours() -> Cost:
        spec = workshop.project("vertex-job", locked=False)
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        spec.write_text(_SPEC.format(python=python, digest=64 * "0"))
        with _services(workshop, spec.parent):
            return cost(workshop.script("provision", "apply", str(spec), "--sandbox", "--yes"))

    return repeat(ours, rounds=5), None


@contextmanager
def _services(workshop: Workshop, project: Path) -> Iterator[None]:
    call = workshop.script("provision", "sandbox", "up", "--output-format", "json")
    with subprocess.Popen(
        call.argv,
        env=dict(call.environment),
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise Unmeasured("the services of the sandbox do not start")
            yield
        finally:
            process.terminate()
