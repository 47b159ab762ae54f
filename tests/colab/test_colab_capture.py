"""The cell of `provision capture --print-cell` in a kernel of the stand-in for a Colab runtime."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import uv

from provision.commands.capture import cell_text
from provision.verification.diff.snapshot import read_snapshot
from tests import fork_server
from tests.colab_rig.catalogue import Tool
from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook

pytestmark = pytest.mark.network


def run_cell(notebook: Notebook, out: Path) -> dict[str, Any]:
    """Run the cell, keep what it printed, and return the document."""
    ran = notebook.run(cell_text())
    assert (ran.ended, ran.error) == ("ok", ""), ran.text
    document: dict[str, Any] = json.loads(ran.text)
    assert document == json.loads((notebook.machine.content / "capture.json").read_bytes())
    out.write_text(ran.text, encoding="utf-8")
    return document


def diff(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*fork_server.ARGV, "diff", *words]
    return fork_server.run(command, cwd=folder, capture_output=True, text=True, check=False)


def install(machine: Machine, *words: str) -> None:
    command = [uv.find_uv_bin(), "pip", "install", "--quiet", "--python", str(machine.python)]
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, env=machine.environment(), check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_cell_describes_its_kernel_and_installs_nothing(
    machine: Machine, tmp_path: Path
) -> None:
    before = machine.versions()
    with Notebook(machine) as notebook:
        loaded = notebook.run("import sys; print(len(sys.modules))").text
        found = run_cell(notebook, tmp_path / "first.json")
        notebook.run("import json; CAPTURED = json")
        again = run_cell(notebook, tmp_path / "second.json")
        assert notebook.run("CAPTURED.__name__").text.strip() == "'json'"
    assert int(loaded) > 100
    assert machine.versions() == before
    assert machine.downloads == []
    assert {name: row["version"] for name, row in found["packages"].items()} == before
    assert found["unread"] == []
    assert found["readings"]["place.product"] == ("Google Colab release-colab_20250807-060059_RC00")
    assert found["readings"]["folder.working"] == "writable"
    assert found["modules"] == {}
    assert again["packages"] == found["packages"]
    done = diff(tmp_path, "first.json", "second.json")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("first and second have no difference that matters")


@pytest.mark.long
def test_diff_of_two_cells_names_the_package_that_was_replaced_under_the_kernel(
    machine: Machine, tmp_path: Path
) -> None:
    with Notebook(machine) as notebook:
        run_cell(notebook, tmp_path / "first.json")
        install(machine, "numpy==2.2.0")
        (machine.content / "requests.py").write_text("")
        found = run_cell(notebook, tmp_path / "second.json")
    old = json.loads((tmp_path / "first.json").read_text())["packages"]["numpy"]["version"]
    assert found["modules"]["numpy"] == {"package": "numpy", "loaded": old, "installed": "2.2.0"}
    assert found["shadowed"] == [
        {"module": "requests", "file": "requests.py", "folder": "the working folder"}
    ]
    (tmp_path / "trace.txt").write_text(
        "ImportError: numpy.core.multiarray failed to import (auto-generated because you didn't "
        "call 'numpy.import_array()' after cimporting numpy)\n"
    )
    done = diff(tmp_path, "first.json", "second.json", "--error", "trace.txt")
    assert done.returncode == 1
    first = " ".join(done.stdout.split("differs")[0].split())
    assert f"on second, numpy {old} is loaded, but 2.2.0 is installed" in first
    every = " ".join(diff(tmp_path, "first.json", "second.json", "--all").stdout.split())
    assert "requests.py in the working folder is imported instead of the module" in every


@pytest.mark.long
def test_the_printed_capture_becomes_a_spec_of_what_was_added_to_the_runtime(
    machine: Machine, tool: Tool, tmp_path: Path
) -> None:
    with Notebook(machine) as notebook:
        install(machine, "einops==0.8.0", "tqdm==4.66.5")
        found = run_cell(notebook, tmp_path / "c.json")
    packages = {name: row["version"] for name, row in found["packages"].items()}
    assert read_snapshot((tmp_path / "c.json").read_bytes(), "c.json", "c").packages == packages
    done = tool.run("import", "c.json", "-o", "spec.yaml", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "packages of the Colab runtime 2025.07 were left out" in done.stderr
    spec = (tmp_path / "spec.yaml").read_text()
    assert "packages:\n  - einops==0.8.0\n  - tqdm==4.66.5\n" in spec
    assert 'kind: colab\n    runtime: "2025.07"\n' in spec
    lint = tool.run("lint", "spec.yaml", cwd=tmp_path)
    assert "error[" not in lint.stdout, lint.stdout
