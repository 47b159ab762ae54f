"""specs/keras.yaml and specs/jax.yaml on the emulated instance: the real startup program installs
from the real index and trains.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from provision.agent.probe.report_json import expand
from tests import fork_server
from tests.support import require

pytestmark = [pytest.mark.root, pytest.mark.long, pytest.mark.network]
SPECS = Path(__file__).parents[2] / "specs"
TARGETS = """
targets:
  workbench:
    kind: workbench
    project: my-project
    zones: [us-central1-a]
    machine_type: n1-standard-8
    bucket: gs://my-bucket/provision
"""


def provision(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [*fork_server.ARGV, *words, "--sandbox", "--yes"]
    return fork_server.run(argv, cwd=folder, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("name", ["keras", "jax"])
def test_the_spec_is_verified_on_an_emulated_instance(tmp_path: Path, name: str) -> None:
    require("root", os.geteuid() == 0, "a machine in an isolated root needs root here")
    text = (SPECS / f"{name}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"^platforms: .*\n", "", text, flags=re.MULTILINE)
    (tmp_path / f"{name}.yaml").write_text(text + TARGETS, encoding="utf-8")
    done = provision(tmp_path, "apply", f"{name}.yaml")
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = tmp_path.glob(".provision/sandbox/state/reports/*/report.json")
    report = expand(json.loads(path.read_text(encoding="utf-8")))
    assert report["verdict"]["result"] == "simulated", report["verdict"]
    assert report["subject"]["proof"] == name
    passed = {check["id"] for check in report["checks"] if check["status"] == "pass"}
    assert passed >= {"J01", "J02", "J05", "J06", "J07", "J08"}
    removed = provision(tmp_path, "destroy", f"{name}.yaml")
    assert removed.returncode == 0, removed.stderr[-3000:]
