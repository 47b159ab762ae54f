"""What a person sees and can do while an instance is made, waited for, or fails; by the real command line."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.rig import MINOR, Bench

pytest.importorskip("google.cloud.notebooks_v2")

TARGET = """\
  {name}:
    kind: workbench
    project: my-project
    zones: [us-central1-a, us-central1-b]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
    max_lifetime: 8h
"""
SPEC = f'gpu: none\npython: "{MINOR}"\npackages: [alpha]\ntraining: {{framework: none}}\ntargets:\n'


def spec(bench: Bench, *names: str, more: str = "") -> None:
    bench.spec(SPEC + "".join(TARGET.format(name=name) + more for name in names or ("wb",)))


@contextmanager
def up(bench: Bench, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A sandbox that runs beside, as in another terminal."""
    process = bench.start("sandbox", "up", "--output-format", "json", *words)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["endpoints"]
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def test_a_sandbox_that_is_up_already_is_used_and_boots_the_device(bench: Bench) -> None:
    spec(bench)
    with up(bench) as other:
        done = bench.run("apply", "spec.yaml", "--sandbox", "--yes", timeout=110)
        assert done.returncode in (0, 3), done.stderr  # 3: this machine cannot isolate one
        assert f"SANDBOX: used as it runs already (process {other.pid}: provision sandbox up" in done.stderr
        refused = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--fault", "hang")
        assert refused.returncode == 2
        assert f"process {other.pid}: provision sandbox up" in refused.stderr
        assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
