"""How a notebook gets the project's code: cloned if anybody can read the commit, else embedded."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.commands.apply import ApplyOptions, apply
from provision.commands.plan import plan
from provision.commands.shared.load import load_spec
from provision.plan import Operation
from provision.sandbox.serve import serve
from provision.targets.colab import cell
from provision.targets.colab.payload import decode_payload, encode_payload
from tests.rig import Bench, small_spec

URL = "https://git.example.com/team/job.git"
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def public(bench: Bench) -> dict[str, Any]:
    """The variables by which every git of this machine finds the repository at its URL."""
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{bench.folder.parent}/remote/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://git.example.com/",
    }


def git(bench: Bench, *words: str) -> str:
    return subprocess.run(
        ["git", *IDENTITY, *words],
        cwd=bench.folder,
        env={**os.environ, **public(bench), "HOME": str(bench.folder / "home")},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def spec(bench: Bench, code: str, bucket: str = "") -> None:
    target = f"{{kind: colab, runtime: '2026.07', isolation: venv{bucket}}}"
    bench.spec(small_spec("alpha", extra=f"code: {code}\ntargets: {{c: {target}}}\n"))


@pytest.fixture
def project(bench: Bench) -> Bench:
    """A project with a script in a git repository, whose commit is at its remote."""
    spec(bench, "{path: ., exclude: [home]}")
    (bench.folder / "train.py").write_text("print(1)\n")
    (bench.folder / ".gitignore").write_text("home\n.provision\n")
    bare = bench.folder.parent / "remote/team/job.git"
    bare.parent.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", bare], check=True)
    git(bench, "init", "--quiet", "--initial-branch=main")
    git(bench, "remote", "add", "origin", "git@git.example.com:team/job.git")
    bench.run("lock", "spec.yaml")
    commit(bench)
    return bench


def commit(bench: Bench, *, push: bool = True) -> str:
    git(bench, "add", ".")
    git(bench, "commit", "--quiet", "-m", "next")
    if push:
        git(bench, "push", "--quiet", URL, "main:main")
        git(bench, "update-ref", "refs/remotes/origin/main", "HEAD")
    return git(bench, "rev-parse", "HEAD")


def render(bench: Bench, *words: str, ends: int = 0, **variables: Any) -> str:
    done = bench.run("render", "spec.yaml", *words, **variables)
    assert done.returncode == ends, done.stdout + done.stderr
    return done.stdout + done.stderr


def delivered(bench: Bench) -> dict[str, Any]:
    """Return the description of the clone in a cell; {} if it has an archive."""
    about = cell.parse_about((bench.folder / "spec.colab.py").read_text())
    assert about is not None
    payload = zipfile.ZipFile(io.BytesIO(decode_payload(about["payload"])))
    names = {"code.json", "code.archive"} & set(payload.namelist())
    assert len(names) == 1
    return dict(json.loads(payload.read("code.json"))) if "code.json" in names else {}


def test_a_public_commit_is_cloned(project: Bench) -> None:
    variables, head = public(project), git(project, "rev-parse", "HEAD")
    planned = project.run("plan", "spec.yaml", **variables).stdout
    assert f"code: cloned by the notebook from {URL}, commit {head[:12]}" in planned
    render(project, **variables)
    found = delivered(project)
    assert (found["url"], found["commit"], found["subdirectory"]) == (URL, head, "")
    assert found["left_out"] == ["spec.lock", "spec.yaml"]


@pytest.mark.long
def test_a_notebook_with_current_code_stays_as_it_is(project: Bench) -> None:
    variables, head = public(project), git(project, "rev-parse", "HEAD")
    render(project, **variables)
    assert commit(project) != head
    shutil.rmtree(project.folder.parent / "remote")
    render(project, "--check", **variables)
    (project.folder / "train.py").write_text("print(2)\n")
    assert "does not match" in render(project, "--check", ends=1, **variables)
    render(project, **variables)
    assert delivered(project) == {}
    commit(project, push=False)
    render(project, "--check", **variables)


@pytest.mark.parametrize("clone", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_a_notebook_whose_payload_is_in_a_bucket_stays_as_it_is(
    project: Bench, tmp_path: Path, clone: str
) -> None:
    spec(project, f"{{path: ., exclude: [home], clone: {clone}}}", ", bucket: 'gs://my-bucket/p'")
    head = commit(project)
    with serve(tmp_path / "services") as sandbox:
        sandbox.store.make_bucket("my-bucket")
        environment = project.environment(**public(project))
        system = RealSystem(environment, endpoints=sandbox.endpoints)
        told = (lambda *_: None, list[str]().append)

        def planned() -> Operation:
            loaded = load_spec(project.folder / "spec.yaml", system)
            (action,) = plan(loaded, ("c",), system, told[1]).target_plans.plan.actions
            return action.operation

        def applied() -> None:
            loaded = load_spec(project.folder / "spec.yaml", system)
            assert apply(loaded, ("c",), ApplyOptions(), system, *told).exit_code == 3

        applied()
        cell_text = (project.folder / "spec.colab.py").read_text()
        assert commit(project) != head
        assert planned() is Operation.KEEP
        render(project, "--check", **public(project))
        (project.folder / "train.py").write_text("print(2)\n")
        commit(project)
        assert planned() is Operation.CHANGE
        applied()
        assert (project.folder / "spec.colab.py").read_text() != cell_text
        commit(project)
        assert planned() is Operation.KEEP


@pytest.mark.long
def test_an_edited_archive_in_a_cell_is_replaced(project: Bench) -> None:
    spec(project, "{path: ., exclude: [home], clone: false}")
    render(project)
    path = project.folder / "spec.colab.py"
    text = path.read_text()
    about = cell.parse_about(text)
    assert about is not None
    payload = decode_payload(about["payload"])
    edited = payload.replace(b"print(1)", b"print(9)")
    assert edited != payload
    path.write_text(cell.render_cell(about, encode_payload(edited), (), about["code"]))
    assert "does not match" in render(project, "--check", ends=1)
    render(project)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "bucket", ["", pytest.param(", bucket: 'gs://my-bucket/p'", marks=pytest.mark.long)]
)
def test_an_edited_commit_in_a_cell_is_replaced(project: Bench, bucket: str) -> None:
    variables, earlier = public(project), git(project, "rev-parse", "HEAD")
    spec(project, "{path: ., exclude: [home]}", bucket)
    (project.folder / "train.py").write_text("print(2)\n")
    head = commit(project)
    render(project, **variables)
    path = project.folder / "spec.colab.py"
    text = path.read_text()
    about = dict(cell.parse_about(text) or {})
    described = decode_payload(about.pop("code")).replace(head.encode(), earlier.encode())
    payload, addresses = about.pop("payload"), about.pop("payload_urls")
    edited = cell.render_cell(about, payload, addresses, encode_payload(described))
    assert edited != text
    for _ in ("the state has the cell", "another machine"):
        path.write_text(edited)
        assert "does not match" in render(project, "--check", ends=1, **variables)
        render(project, **variables)
        assert path.read_text() == text
        shutil.rmtree(project.folder / ".provision")


@pytest.mark.long
def test_a_commit_that_is_on_no_branch_of_the_remote_is_replaced(project: Bench) -> None:
    variables, head = public(project), git(project, "rev-parse", "HEAD")
    render(project, **variables)
    git(project, "commit", "--quiet", "--amend", "-m", "another")
    git(project, "push", "--quiet", "--force", URL, "main:main")
    git(project, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert "does not match" in render(project, "--check", ends=1, **variables)
    render(project, **variables)
    assert delivered(project)["commit"] == git(project, "rev-parse", "HEAD") != head
    commit(project)
    git(project, "reflog", "expire", "--expire=now", "--all")
    shallow = project.folder / ".git/shallow"
    shallow.write_text(git(project, "rev-parse", "HEAD") + "\n")
    git(project, "prune", "--expire=now")
    assert git(project, "rev-list", "--count", "--all") == "1"
    render(project, "--check", **variables)


@pytest.mark.long
def test_code_that_nobody_else_can_read_is_embedded(project: Bench) -> None:
    variables = public(project)
    (project.folder / "home/.gitconfig").write_text(
        f'[url "{variables["GIT_CONFIG_KEY_0"][4:-10]}"]\n  insteadOf = https://git.example.com/\n'
    )
    assert "code: in the notebook" in project.run("plan", "spec.yaml").stdout
    (project.folder / "train.py").write_text("print(2)\n")
    assert "code: in the notebook" in project.run("plan", "spec.yaml", **variables).stdout
    commit(project, push=False)
    assert "code: in the notebook" in project.run("plan", "spec.yaml", **variables).stdout
    git(project, "push", "--quiet", URL, "main:main")
    git(project, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert "code: cloned" in project.run("plan", "spec.yaml", **variables).stdout
    spec(project, "{path: ., exclude: [home], clone: false}")
    assert "code: in the notebook" in project.run("plan", "spec.yaml", **variables).stdout


@pytest.mark.long
def test_a_cell_that_names_a_foreign_repository_is_out_of_date(project: Bench) -> None:
    variables = public(project)
    render(project, **variables)
    git(project, "remote", "set-url", "origin", "https://git.example.com/other/job.git")
    assert "does not match" in render(project, "--check", ends=1, **variables)


@pytest.mark.long
def test_files_that_git_changes_on_checkout_are_embedded(project: Bench) -> None:
    (project.folder / ".gitattributes").write_text("*.py text eol=crlf\n")
    (project.folder / "train.py").write_bytes(b"print(1)\r\n")
    commit(project)
    assert git(project, "status", "--porcelain") == ""
    assert "code: in the notebook" in project.run("plan", "spec.yaml", **public(project)).stdout


def test_code_of_a_repository_is_cloned_by_its_locked_commit(project: Bench) -> None:
    variables, head = public(project), git(project, "rev-parse", "HEAD")
    spec(project, f"{{git: '{URL}', rev: main}}")
    assert project.run("lock", "spec.yaml", **variables).returncode == 0
    render(project, **variables)
    found = delivered(project)
    assert (found["url"], found["commit"], found["left_out"]) == (URL, head, [])
