"""A package whose folder is the project: what changes it, and what does not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.commands.test_package_sources import write_package
from tests.rig import BACKEND, Bench, make_index, make_wheel, small_spec

TRAIN = "import time\nopen('out.txt', 'w').write(str(time.time_ns()))\n"
COMMAND = "code: .\nverify: {command: [python, train.py], expect: {files: [out.txt]}}\n"
EDITABLE = "{name: ours, path: ., editable: true}"


@pytest.fixture
def project(bench: Bench) -> Bench:
    """The package ours in the folder `work`, apart from the home and the caches of the bench."""
    backend = make_wheel(bench.folder / "made", "rigbackend", "1.0", code=BACKEND)
    make_index(bench.folder.parent / "index", (backend,))
    write_package(bench.folder / "work")
    (bench.folder / "work/train.py").write_text(TRAIN)
    return bench


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def run(bench: Bench, *words: str) -> str:
    done = bench.run(*words, COLUMNS="200")
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    "line", ["{name: ours, path: .}", pytest.param(EDITABLE, marks=pytest.mark.long)]
)
def test_what_provision_and_the_command_write_changes_no_package(project: Bench, line: str) -> None:
    folder = project.folder / "work"
    project.spec(small_spec(line, extra=f"extends: ./shared.yaml\n{COMMAND}"), "work/spec.yaml")
    (folder / "shared.yaml").write_text("name: shared\n")
    (folder / "other.yaml").write_text(small_spec("alpha"))
    run(project, "apply", "work/spec.yaml", "--yes")
    run(project, "lock", "work/other.yaml")
    written = (folder / "out.txt").read_text()
    for name in ("other.yaml", "other.lock", "shared.yaml"):
        with (folder / name).open("a") as file:
            file.write("\n" if name.endswith("lock") else "# a comment\n")
    again = run(project, "apply", "work/spec.yaml", "--yes")
    assert "No changes: this is the stored verdict" in again
    assert (folder / "out.txt").read_text() == written, "the command ran again"

    (folder / "train.py").write_text(TRAIN + "# edited\n")
    (folder / "new.py").write_text("")
    planned = run(project, "plan", "work/spec.yaml")
    if line == EDITABLE:
        assert "new.py, train.py have changed since it was verified" in planned
    else:
        assert "the files of ours have changed: new.py, train.py" in planned


def test_files_that_git_does_not_track_belong_to_no_package(project: Bench) -> None:
    folder = project.folder / "work"
    target = "targets: {c: {kind: colab, runtime: '2026.07', isolation: venv}}\n"
    project.spec(small_spec("{name: ours, path: .}", extra=target), "work/spec.yaml")
    git(folder, "init", "-q")
    run(project, "lock", "work/spec.yaml")
    untracked = project.run("plan", "work/spec.yaml")
    assert untracked.returncode == 2
    shown = " ".join(untracked.stderr.split())
    assert "ours: git does not track pyproject.toml, and only tracked files belong to" in shown
    assert "run `git add` for it" in shown

    git(folder, "add", "pyproject.toml", "build.py", "ours.py")
    (folder / "notes.txt").write_text("one\n")
    run(project, "render", "work/spec.yaml")
    (folder / "notes.txt").write_text("two\n")
    (folder / "new.py").write_text("")
    run(project, "render", "work/spec.yaml", "--check")

    write_package(folder, 22)
    note = "ours: files that git does not track are not part of it: new.py, notes.txt"
    assert note in run(project, "plan", "work/spec.yaml")
    changed = project.run("render", "work/spec.yaml", "--check")
    assert changed.returncode == 1
    assert "spec.ipynb does not match the spec, the lock and the files of ours" in changed.stdout


def checks(project: Bench) -> dict[str, str]:
    path = project.folder / "work/.provision/reports/spec.local/report.json"
    return {check["id"]: check["status"] for check in json.loads(path.read_bytes())["checks"]}


def test_what_the_code_excludes_is_not_in_its_package(project: Bench) -> None:
    extra = "code: {path: ., exclude: [logs]}\n"
    project.spec(small_spec(EDITABLE, extra=extra), "work/spec.yaml")
    made = project.folder / "work/ours.egg-info"
    made.mkdir()  # as setuptools leaves it next to the modules
    (made / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    run(project, "apply", "work/spec.yaml", "--yes")
    found = checks(project)
    assert (found["P03"], found["P06:ours"]) == ("pass", "pass")
    (project.folder / "work/logs").mkdir()
    (project.folder / "work/logs/one").write_text("")
    (made / "SOURCES.txt").write_text("ours.py\n")
    assert "nothing has changed since" in run(project, "plan", "work/spec.yaml")
    (project.folder / "work/one").write_text("")
    assert "one has changed since it was verified" in run(project, "plan", "work/spec.yaml")
