"""Wheels of a project's packages in the payload of a cell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from provision.agent.core.files import zip_files
from tests.agent.install.bench import sha256
from tests.agent.notebook.bench import Runtime
from tests.agent.notebook.test_tools import path_without_uv, with_pip
from tests.rig import make_wheel


def lay_out(runtime: Runtime, code: str) -> Path:
    wheel = make_wheel(runtime.folder / "own", "ours", "1.0", code=code)
    document = runtime.document("alpha==1.0", uv=None)
    row = {"name": "ours", "version": "1.0", "index": "source.own"}
    document["install"]["packages"].append({**row, "files": {wheel.name: sha256(wheel)}})
    return runtime.lay_out(document, wheels=zip_files({wheel.name: wheel.read_bytes()}))


@pytest.mark.parametrize("tool", ["uv", pytest.param("pip", marks=pytest.mark.long)])
def test_an_edit_is_installed_again(runtime: Runtime, tool: str) -> None:
    path = {}
    if tool == "pip":
        with_pip(runtime)
        path = path_without_uv(runtime)
    runtime.bring("alpha==1.0")
    # The values differ in length: a compiled file is told by the size and the second of its source.
    for value, summary in (
        (1, "1 kept, 0 changed, 1 added"),
        (22, "1 kept, 0 changed, 0 added, 1 with changed code"),
    ):
        folder = lay_out(runtime, f"CODE = {value}\n")
        done = runtime.start(folder, **path)
        assert summary in done.stdout, done.stdout + done.stderr
        assert (done.returncode, runtime.status["outcome"]) == (0, "verified")
        shown = subprocess.run(
            [runtime.python, "-c", "import ours; print(ours.CODE)"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stdout.strip() == str(value)
    assert "nothing to install" in runtime.start(folder, **path).stdout
