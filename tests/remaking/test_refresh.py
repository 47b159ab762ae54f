"""`make refresh`: the tables written anew, with the text of the pull request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import remake_tensorflow
from tests.remaking.serving import served, wheel
from tests.remaking.test_scripts import ROOT
from tests.remaking.test_tensorflow import CODES, INFO


@pytest.mark.long(minutes=True)
def test_the_pull_request_lists_rows_findings_and_what_was_not_read(tmp_path: Path) -> None:
    project = tmp_path / "project"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(project)], check=True)
    golden = project / "tests/golden/drivers/lint.txt"
    before = golden.read_text()
    golden.write_text("of an earlier version\n" + before)
    commit = ["commit", "--quiet", "--all", "--message", "an earlier version"]
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *author, *commit], cwd=project, check=True)
    members = {remake_tensorflow.MEMBER: INFO.format(codes=CODES)}
    files = wheel("tensorflow", "2.99.0", "cp313-cp313-manylinux_2_27_x86_64", members=members)
    with served(files) as server:
        environment = {
            **os.environ,
            "PYTHONPATH": str(project / "src"),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"{server.address}/simple",
            "PIP_RETRIES": "0",
            "TABLES": "tensorflow cuda",
        }
        done = subprocess.run(
            ["sh", "support/refresh_facts.sh", str(Path(sys.executable).parent)],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr
    text = (project / ".cache/refresh.md").read_text()
    assert text in done.stdout
    rows, findings, unread = text.split("\n## ")[1:]
    assert "+ tensorflow:2.99.0\n" in rows
    assert "as_of" not in rows
    assert "-of an earlier version\n" in findings
    assert golden.read_text() == before
    assert unread.startswith("Not read\n\n- cuda: cannot read anew: ")
    assert "2.99.0" in (project / "src/provision/facts/tables/parts/tensorflow.yaml").read_text()
