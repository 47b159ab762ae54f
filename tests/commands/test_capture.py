"""provision capture: one file that describes an environment, for diff and for notebooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from provision import __version__
from provision.agent import capture as program
from provision.agent.probe.machine_info import collect_machine_info
from provision.commands.capture import cell_text
from provision.verification.diff.snapshot import CAPTURE_SCHEMA, read_snapshot
from tests import fork_server

SECRET = "s3cr3t-v4lue"


def provision(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), **variables}
    command = [*fork_server.ARGV, *words]
    return fork_server.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=120
    )


def test_schema_and_version_are_those_of_provision() -> None:
    assert program.SCHEMA == CAPTURE_SCHEMA
    assert {"name": "provision", "version": __version__} == program.TOOL


def test_readings_equal_those_of_env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    captured = program.capture_environment()
    described: dict[str, Any] = collect_machine_info(dict(os.environ))["readings"]
    common = {key for key in captured["readings"] if key in described}
    exact = sorted(key for key in common if "free_bytes" not in key)
    assert captured["unread"] == []
    assert len(exact) >= 10
    assert {key: captured["readings"][key] for key in exact} == {
        key: described[key] for key in exact
    }


def test_diff_reads_two_captures_and_names_the_variable(tmp_path: Path) -> None:
    python = ("--python", sys.executable)
    first = provision("capture", *python, "-o", "a.json", cwd=tmp_path, MY_API_KEY=SECRET)
    second = provision("capture", *python, "-o", "b.json", cwd=tmp_path, PYTHONOPTIMIZE="1")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "provision diff A.json B.json" in first.stderr
    text = (tmp_path / "a.json").read_text()
    assert "MY_API_KEY" in text
    assert SECRET not in text
    found = provision("diff", "a.json", "b.json", cwd=tmp_path)
    assert found.returncode == 1
    assert "PYTHONOPTIMIZE" in found.stdout.splitlines()[0]


def test_the_cell_runs_alone_and_writes_the_same_schema(tmp_path: Path) -> None:
    cell = tmp_path / "cell.py"
    cell.write_text(cell_text())
    done = subprocess.run(
        [sys.executable, "-I", str(cell)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    content = (tmp_path / "capture.json").read_bytes()
    assert json.loads(done.stdout) == json.loads(content)
    assert json.loads(content)["schema"] == CAPTURE_SCHEMA
    assert read_snapshot(content, "capture.json", "cell").packages


def test_print_cell_prints_the_cell(tmp_path: Path) -> None:
    done = provision("capture", "--print-cell", cwd=tmp_path)
    assert done.stdout.strip() == cell_text().strip()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--python", "nowhere/python"), "cannot start"),
        (("-o", "there.json"), "already exists"),
        (("-o", "nowhere/a.json"), "there is no folder nowhere"),
        (("-o", "/proc/a.json"), "/proc/a.json"),
    ],
)
def test_bad_input_is_refused(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    (tmp_path / "there.json").write_text("kept")
    done = provision("capture", *words, cwd=tmp_path)
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "there.json").read_text() == "kept"
