"""The quickstart as a conda environment: the same lock's stack on conda's Python, with the
Trainer's run inside.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from provision.lock import loads
from tests.conda_rig import CondaChannel
from tests.rig import MINOR

ROOT = Path(__file__).parents[2]
CONDA = (
    "conda_packages: [ffmpeg=7]\ntargets: {local: {kind: local, manager: conda}, plain: {kind: "
    "local}}\n"
)


@pytest.mark.hf
@pytest.mark.long
@pytest.mark.network
@pytest.mark.skipif(
    MINOR != "3.11", reason="the rig packs the Python that runs, and the quickstart is for 3.11"
)
def test_the_quickstart_trains_on_condas_python(conda: CondaChannel, tmp_path: Path) -> None:
    text = (
        (ROOT / "specs/quickstart.yaml")
        .read_text()
        .replace("platforms: [linux-x86_64, macos-arm64]", "platforms: [linux-x86_64]")
    )
    (tmp_path / "quickstart.yaml").write_text(f"{text}\n{CONDA}")
    environment = {**os.environ, **conda.variables(), "PROVISION_CONDA": "py-rattler"}
    words = [
        sys.executable,
        "-m",
        "provision",
        "apply",
        "quickstart.yaml",
        "--target",
        "local",
        "--yes",
    ]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / ".provision/reports/quickstart.local/report.json").read_text())
    assert report["verdict"]["result"] == "verified"
    assert {check["id"]: check["status"] for check in report["checks"]}["R01"] == "pass"
    lock = loads((tmp_path / "quickstart.lock").read_text(), "quickstart.lock")
    here, plain = (lock.environment(target, "linux-x86_64") for target in ("local", "plain"))
    assert here is not None
    assert plain is not None
    assert lock.versions(here) == lock.versions(plain)
