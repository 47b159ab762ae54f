"""The code of a project and the proof of its own job: the same script at all three places."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import expand
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
code: {path: ., exclude: ["*.log"]}
secrets: {TOKEN: {env: MINE, colab: MINE, secret: projects/my-project/secrets/hf/versions/1}}
training: {framework: none}
verify:
  command: [python, train.py, --max_steps, "3"]
  expect: {files: [model.txt], stdout: "loss [0-9.]+ with a token"}
targets:
  laptop: {kind: local}
  colab: {kind: colab, runtime: "2025.07"}
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
"""
TRAIN = """\
import os, sys
import numpy
from model import SLOPE

steps = int(sys.argv[sys.argv.index("--max_steps") + 1])
weight = 0.0
for _ in range(steps):
    weight += 0.5 * (SLOPE - weight)
with open("model.txt", "w") as file:
    file.write(str(numpy.float64(weight)))
print("loss", round((SLOPE - weight) ** 2, 4), "with a token" if os.environ["TOKEN"] else "")
"""
FILES = {"train.py": TRAIN, "model.py": "SLOPE = 2.0\n", "run.log": "left out\n"}


def write_project(folder: Path) -> None:
    (folder / "spec.yaml").write_text(SPEC, encoding="utf-8")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", *FILES), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True)


def read_job(path: Path) -> dict[str, Any]:
    """Return the checks and readings of the job in a report."""
    report = expand(json.loads(path.read_bytes()))
    readings = {row["key"]: row["value"] for row in report["readings"]}
    checks = {check["id"]: check["status"] for check in report["checks"]}
    return {
        "checks": (checks["V01"], checks["V02"]),
        **{key: readings[key] for key in ("code.digest", "code.commit", "code.dirty")},
    }


def test_the_same_script_runs_as_a_check_at_every_place(
    tool: Tool, machine: Machine, tmp_path: Path
) -> None:
    why = NamespaceBooter(tmp_path / "try", runner=None).unavailable_reason()
    require("root", os.geteuid() == 0 and not why, f"a machine in an isolated root: {why}")
    project = tmp_path / "project"
    project.mkdir()
    write_project(project)

    def run(*words: str, code: int = 0) -> str:
        done = tool.run(*words, cwd=project, MINE="canary-of-laptop-4711")
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    own = project / ".provision"
    reports = {"laptop": own / "reports/spec.laptop/report.json"}
    run("apply", "spec.yaml", "--target", "laptop", "--yes")
    run("render", "spec.yaml", "--target", "colab")
    machine.keep({"MINE": "canary-of-colab-4711"})
    with Notebook(machine, Rendered(project / "a", project / "spec.ipynb").notebook) as notebook:
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
        shown = notebook.run(
            "import os; print(open(os.environ['PROVISION_CODE'] + '/model.py').read())"
        )
        assert shown.text.strip() == "SLOPE = 2.0"
    reports["colab"] = machine.base / "report.json"
    Store(own / "sandbox").set_secret("projects/my-project/secrets/hf", b"canary-of-wb-4711")
    run("apply", "spec.yaml", "--target", "wb", "--sandbox", "--yes")
    (reports["wb"],) = (own / "sandbox").rglob("reports/spec.wb/report.json")

    jobs = {name: read_job(path) for name, path in reports.items()}
    assert jobs["laptop"]["checks"] == ("pass", "pass")
    assert jobs["laptop"] == jobs["colab"] == jobs["wb"]
    assert len(jobs["laptop"]["code.commit"]) == 40
    compared = run("parity", "spec.yaml", code=3)
    assert "code" in compared

    (project / "model.py").write_text("SLOPE = 3.0\n", encoding="utf-8")
    run("apply", "spec.yaml", "--target", "laptop", "--yes")
    assert read_job(reports["laptop"])["code.dirty"] is True
    shown_difference = run("diff", str(reports["colab"]), str(reports["laptop"]), code=1)
    assert "the code differs in model.py" in " ".join(shown_difference.split())
    run("destroy", "spec.yaml", "--target", "wb", "--sandbox", "--yes")
