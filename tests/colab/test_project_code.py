"""The code of a project and the proof of its own job: the same script at all three places."""

from __future__ import annotations

import json
import os
import shutil
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
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/own-project"
"""A project with its own package, a package from a repository, a script and a notebook."""


def write_project(folder: Path) -> dict[str, str]:
    """Write the example for the stand-in's Python, and return the variables of its git."""
    shutil.copytree(EXAMPLE, folder)
    spec = (folder / "spec.yaml").read_text(encoding="utf-8")
    spec = spec.replace('"3.12"', '"3.11"').replace('"2026.07"', '"2025.07"')
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")
    (folder / "run.log").write_text("not tracked\n", encoding="utf-8")
    remote = folder.parent / "remote"
    make = ["sh", str(EXAMPLE / "make_repository.sh"), str(remote)]
    subprocess.run(make, check=True, capture_output=True)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    files = ("spec.yaml", "train.py", "explore.ipynb", "libs")
    for words in (("init", "-q"), ("add", *files), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{remote}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://git.example.com/",
    }


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def read_job(path: Path) -> dict[str, Any]:
    """Return the checks and readings of the job in a report."""
    report = expand(json.loads(path.read_bytes()))
    readings = {row["key"]: row["value"] for row in report["readings"]}
    checks = {check["id"]: check["status"] for check in report["checks"]}
    return {
        "checks": (checks["V01"], checks["V02"]),
        **{key: readings[key] for key in ("code.digest", "code.commit", "code.dirty")},
        **{key: value for key, value in readings.items() if key.startswith("source.")},
    }


def require_emulator(folder: Path) -> None:
    why = NamespaceBooter(folder, runner=None).unavailable_reason()
    require("root", os.geteuid() == 0 and not why, f"a machine in an isolated root: {why}")


def test_the_same_script_runs_as_a_check_at_every_place(
    tool: Tool, machine: Machine, tmp_path: Path
) -> None:
    require_emulator(tmp_path / "try")
    project = tmp_path / "project"
    variables = write_project(project)

    def run(*words: str, code: int = 0) -> str:
        done = tool.run(*words, cwd=project, HF_TOKEN="canary-of-laptop-4711", **variables)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    own = project / ".provision"
    reports = {"laptop": own / "reports/spec.laptop/report.json"}
    run("apply", "spec.yaml", "--target", "laptop", "--yes")
    run("render", "spec.yaml", "--target", "colab")
    machine.keep({"HF_TOKEN": "canary-of-colab-4711"})
    with Notebook(machine, Rendered(project / "a", project / "spec.ipynb").notebook) as notebook:
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
        explore = json.loads((project / "explore.ipynb").read_bytes())["cells"][1]["source"]
        assert notebook.run("".join(explore)).text.strip() == "2.0 1.0"
    reports["colab"] = machine.base / "report.json"
    Store(own / "sandbox").set_secret("projects/my-project/secrets/hf", b"canary-of-wb-4711")
    run("apply", "spec.yaml", "--target", "workbench", "--sandbox", "--yes")
    (reports["workbench"],) = (own / "sandbox").rglob("reports/spec.workbench/report.json")

    jobs = {name: read_job(path) for name, path in reports.items()}
    assert jobs["laptop"]["checks"] == ("pass", "pass")
    assert jobs["laptop"] == jobs["colab"] == jobs["workbench"]
    assert len(jobs["laptop"]["code.commit"]) == 40
    compared = run("parity", "spec.yaml", code=3)
    assert "code" in compared

    edit(project / "train.py", "peak=0.5", "peak=0.4")
    run("apply", "spec.yaml", "--target", "laptop", "--yes")
    assert read_job(reports["laptop"])["code.dirty"] is True
    shown_difference = run("diff", str(reports["colab"]), str(reports["laptop"]), code=1)
    assert "the code differs in train.py" in " ".join(shown_difference.split())

    edit(project / "libs/linear/linear/__init__.py", "def loss", "def lost")
    run("apply", "spec.yaml", "--target", "workbench", "--sandbox", "--yes", code=1)
    job = read_job(reports["workbench"])
    assert job["checks"] == ("pass", "fail")
    assert job["source.linear"] != jobs["workbench"]["source.linear"]
    run("destroy", "spec.yaml", "--target", "workbench", "--sandbox", "--yes")


def test_a_locked_commit_runs_at_every_place(tool: Tool, machine: Machine, tmp_path: Path) -> None:
    require_emulator(tmp_path / "try")
    project = tmp_path / "project"
    variables = write_project(project)
    remote = tmp_path / "remote/team/job.git"
    subprocess.run(["git", "clone", "-q", "--bare", project, remote], check=True)
    job = '{git: "https://git.example.com/team/job.git", exclude: [spec.yaml]}'
    edit(project / "spec.yaml", "{path: ., exclude: [dependency]}", job)

    def run(*words: str, code: int = 0) -> str:
        done = tool.run(*words, cwd=project, HF_TOKEN="canary-of-laptop-4711", **variables)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    own = project / ".provision"
    reports = {"laptop": own / "reports/spec.laptop/report.json"}
    run("apply", "spec.yaml", "--target", "laptop", "--yes")
    assert "cloned by the notebook from https" in run("plan", "spec.yaml", "--target", "colab")
    run("render", "spec.yaml", "--target", "colab")
    machine.keep({"HF_TOKEN": "canary-of-colab-4711"})
    machine.variables |= variables
    with Notebook(machine, Rendered(project / "a", project / "spec.ipynb").notebook) as notebook:
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
    reports["colab"] = machine.base / "report.json"
    Store(own / "sandbox").set_secret("projects/my-project/secrets/hf", b"canary-of-wb-4711")
    run("apply", "spec.yaml", "--target", "workbench", "--sandbox", "--yes")
    (reports["workbench"],) = (own / "sandbox").rglob("reports/spec.workbench/report.json")

    jobs = {name: read_job(path) for name, path in reports.items()}
    assert jobs["laptop"]["checks"] == ("pass", "pass")
    assert jobs["laptop"] == jobs["colab"] == jobs["workbench"]
    assert jobs["laptop"]["code.dirty"] is False

    edit(project / "train.py", "peak=0.5", "peak=0.4")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("commit", "-qm", "two", "train.py"), ("push", "-q", str(remote), "HEAD")):
        subprocess.run(["git", *identity, *words], cwd=project, check=True)
    run("lock", "spec.yaml", "--upgrade", "code")
    run("apply", "spec.yaml", "--target", "laptop", "--yes")
    shown_difference = run("diff", str(reports["colab"]), str(reports["laptop"]), code=1)
    assert "the code differs in train.py" in " ".join(shown_difference.split())
    run("destroy", "spec.yaml", "--target", "workbench", "--sandbox", "--yes")
