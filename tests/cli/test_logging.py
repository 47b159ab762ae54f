"""The options of the log on the command line: where they stand, and what they never create."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "specs/quickstart.yaml", tmp_path / "spec.yaml")
    return tmp_path


def provision(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "provision", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **variables},
    )


def test_verbose_precedes_the_command_and_logs_to_stderr_only(folder: Path) -> None:
    plain, verbose = (provision(folder, *options, "lint", "spec.yaml") for options in ((), ("-v",)))
    assert (plain.returncode, verbose.returncode) == (0, 0)
    assert verbose.stdout == plain.stdout
    assert "INFO command line: provision -v lint spec.yaml" in verbose.stderr
    assert plain.stderr == ""


def test_lint_creates_no_log_by_itself(folder: Path) -> None:
    provision(folder, "lint", "spec.yaml")
    assert not (folder / ".provision").exists()


def test_a_log_file_holds_the_command_line_without_secrets(folder: Path) -> None:
    token = "no-shape-at-all-1"
    done = provision(folder, "--log-file", "x.log", "lint", "spec.yaml", token, HF_TOKEN=token)
    assert done.returncode == 2
    text = (folder / "x.log").read_text()
    assert "command line: provision --log-file x.log lint spec.yaml" in text
    assert token not in text


def test_a_log_file_that_cannot_be_written_is_an_error_with_a_hint(folder: Path) -> None:
    done = provision(folder, "--log-file", "nowhere/x.log", "lint", "spec.yaml")
    assert done.returncode == 2
    assert "cannot write the log file nowhere/x.log" in done.stderr
    assert "--log-file provision.log" in done.stderr
