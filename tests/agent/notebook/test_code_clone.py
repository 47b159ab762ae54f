"""Code of a project that the cell clones from a public repository, in place of an archive."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provision.agent.core.code_clone import CodeClone
from provision.agent.core.code_files import (
    CodeError,
    CodeFile,
    code_folder,
    compute_code_digest,
)
from tests.agent.notebook.bench import Runtime

URL = "https://git.example.com/team/job.git"
JOB = b"import os\nprint('here', os.path.basename(os.getcwd()))\n"
DIGEST = compute_code_digest([CodeFile("job.py", 0o100644, hashlib.sha256(JOB).hexdigest())])


@pytest.fixture
def remote(tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A repository with one commit, and the variables by which git finds it at the URL."""
    folder = tmp_path / "remote/team/job.git"
    (folder / "src").mkdir(parents=True)
    (folder / "src/job.py").write_bytes(JOB)
    (folder / "src/.env").write_bytes(b"A=1\n")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)
    asked = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True)
    variables = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/remote/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://git.example.com/",
    }
    return commit.stdout.strip(), variables


def lay_out(runtime: Runtime, clone: CodeClone) -> Path:
    runtime.bring("alpha==1.0")
    document = runtime.document("alpha==1.0", expectations__code={"digest": DIGEST})
    return runtime.lay_out(document, clone=clone.to_bytes())


def test_the_cell_clones_once_and_checks_the_digest(
    runtime: Runtime, remote: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    commit, variables = remote
    clone = CodeClone(URL, commit, "src", (".env",), DIGEST)
    folder = lay_out(runtime, clone)
    done = runtime.start(folder, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    tree = code_folder(runtime.base / "code", DIGEST)
    assert [path.name for path in tree.iterdir()] == ["job.py"]
    checks = {row["id"]: row["status"] for row in runtime.report["checks"]}
    readings = {row["key"]: row["value"] for row in runtime.report["readings"]}
    assert (checks["V01"], readings["code.commit"]) == ("pass", commit)
    shutil.rmtree(tmp_path / "remote")
    assert "here tree" in runtime.start(folder, "job.py", verb="run", **variables).stdout


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"left_out": ()}, "does not contain this notebook's files"),
        pytest.param({"commit": "1" * 40}, "not our ref", marks=pytest.mark.long),
        pytest.param(
            {"url": "https://git.example.com/none.git"}, "none.git", marks=pytest.mark.long
        ),
    ],
)
def test_a_clone_that_differs_or_fails_stops_the_cell_with_a_fix(
    runtime: Runtime,
    remote: tuple[str, dict[str, str]],
    changes: dict[str, Any],
    words: str,
) -> None:
    commit, variables = remote
    values = {"url": URL, "commit": commit, "subdirectory": "src", "left_out": (".env",)}
    clone = CodeClone(**{**values, "digest": DIGEST, **changes})
    done = runtime.start(lay_out(runtime, clone), **variables)
    assert done.returncode == 1
    assert f"the project's code cannot be cloned from {clone.url}" in done.stderr
    assert words in done.stderr
    assert "set `clone: false` under `code`" in done.stderr
    assert not list((runtime.base / "code").glob("*"))
    assert json.loads((runtime.base / "status.json").read_text())["outcome"] == "error"


def test_a_description_that_is_damaged_is_refused() -> None:
    good = CodeClone(URL, "1" * 40, "", (), DIGEST).to_bytes()
    assert CodeClone.from_bytes(good).url == URL
    for change in (
        {"url": "file:///tmp/x"},
        {"url": "https://me@git.example.com/x"},
        {"commit": "--upload-pack=x"},
        {"schema": "other"},
        {"more": 1},
    ):
        with pytest.raises(CodeError):
            CodeClone.from_bytes(json.dumps({**json.loads(good), **change}).encode())
    with pytest.raises(CodeError):
        CodeClone.from_bytes(b"[]")
