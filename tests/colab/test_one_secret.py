"""One spec with one secret for a laptop, Colab and Workbench, applied at all three."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.namespace_booter import NamespaceBooter
from provision.sandbox.store import Store
from tests.colab_rig.catalogue import Tool
from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook
from tests.colab_rig.rendered import Rendered
from tests.support import require

pytestmark = [pytest.mark.network, pytest.mark.root, pytest.mark.long(minutes=True)]
SPEC = """\
gpu: none
python: "3.11"
packages: [numpy, einops]
env: {PLACE: laptop}
secrets: {HF_TOKEN: {env: MINE, colab: MINE, secret: projects/my-project/secrets/hf/versions/1}}
training: {framework: none}
targets:
  laptop: {kind: local}
  colab: {kind: colab, runtime: "2025.07", env: {PLACE: colab}}
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
    env: {PLACE: workbench}
"""
VALUES = {place: f"canary-of-{place}-4711" for place in ("laptop", "colab", "workbench")}
SHOW = "import os; print(os.environ['PLACE'], os.environ['HF_TOKEN'])"


def secrets_of(report: dict[str, Any]) -> str:
    (check,) = (one for one in report["checks"] if one["id"] == "Y01")
    return str(check["status"])


def test_each_place_reads_its_own_source(tool: Tool, machine: Machine, tmp_path: Path) -> None:
    why = NamespaceBooter(tmp_path / "try", runner=None).unavailable_reason()
    require("root", os.geteuid() == 0 and not why, f"a machine in an isolated root: {why}")
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")

    def run(*words: str) -> str:
        done = tool.run(*words, cwd=tmp_path, MINE=VALUES["laptop"])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("apply", "spec.yaml", "--target", "laptop", "--yes")
    shown = run("run", "spec.yaml", "--target", "laptop", "--", "python", "-c", SHOW)
    assert shown.split() == ["laptop", VALUES["laptop"]]
    own = tmp_path / ".provision"
    assert secrets_of(json.loads((own / "reports/spec.laptop/report.json").read_bytes())) == "pass"

    run("render", "spec.yaml", "--target", "colab")
    machine.keep({"MINE": VALUES["colab"]})
    made = Rendered(tmp_path / "spec.colab.py", tmp_path / "spec.ipynb")
    with Notebook(machine, made.notebook) as notebook:
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
        assert notebook.run(SHOW).text.split() == ["colab", VALUES["colab"]]
    assert secrets_of(json.loads((machine.base / "report.json").read_bytes())) == "pass"

    store = Store(own / "sandbox")
    store.set_secret("projects/my-project/secrets/hf", VALUES["workbench"].encode())
    run("apply", "spec.yaml", "--target", "wb", "--sandbox", "--yes")
    (path,) = (own / "sandbox").rglob("reports/spec.wb/report.json")
    assert secrets_of(json.loads(path.read_bytes())) == "pass"
    run("destroy", "spec.yaml", "--target", "wb", "--sandbox", "--yes")
