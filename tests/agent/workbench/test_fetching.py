"""The locked uv, taken out of its wheel without an installer: what is put in place, and what is
not.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from provision.verification import device_files
from tests.agent.workbench.conftest import Bench
from tests.rig import served

NAME = f"uv-9.9.9-py3-none-manylinux_2_17_{platform.machine()}.whl"
PROGRAM = "#!/bin/sh\necho uv 9.9.9\n"


def wheel(folder: Path, inner: str = "uv-9.9.9.data/scripts/uv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / NAME, "w") as archive:
        archive.writestr(inner, PROGRAM)
    return folder / NAME


def page(folder: Path, *links: str) -> None:
    (folder / "index.html").write_text(
        "<!DOCTYPE html>\n" + "\n".join(f'<a href="{link}">x</a>' for link in links)
    )


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(tmp_path: Path, **asked: Any) -> subprocess.CompletedProcess[str]:
    (tmp_path / "device.pyz").write_bytes(device_files.workbench_zipapp())
    document = {"name": "uv", "version": "9.9.9", "target": str(tmp_path / "tools"), **asked}
    words = [sys.executable, "-I", str(tmp_path / "device.pyz"), "fetch"]
    return subprocess.run(
        words, input=json.dumps(document), capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize("named", [True, False], ids=["the index names hashes", "it names none"])
def test_the_program_of_the_locked_wheel_is_put_in_place(tmp_path: Path, named: bool) -> None:
    made = wheel(tmp_path / "index/uv")
    other = "0" * 64
    page(
        tmp_path / "index/uv",
        f"uv-9.9.8-py3-none-any.whl#sha256={other}",
        "uv-9.9.9.tar.gz",
        NAME + (f"#sha256={sha256(made)}" if named else ""),
    )
    with served(tmp_path / "index") as index:
        done = fetch(tmp_path, index=index, hashes=[f"sha256:{sha256(made)}"])
    assert (done.returncode, done.stderr) == (0, "")
    program = tmp_path / "tools/bin/uv"
    assert (
        subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
        == "uv 9.9.9\n"
    )
    assert [path.name for path in program.parent.iterdir()] == ["uv"]


def test_another_hash_is_refused_and_nothing_is_put_in_place(tmp_path: Path) -> None:
    wheel(tmp_path / "index/uv")
    page(tmp_path / "index/uv", NAME)
    with served(tmp_path / "index") as index:
        done = fetch(tmp_path, index=index, hashes=["0" * 64])
    assert done.returncode == 1
    assert "no wheel for this machine matches the locked hash" in done.stderr
    assert not (tmp_path / "tools").exists()


@pytest.mark.parametrize("asked", ["file:///srv", "http://127.0.0.1:9", "nonsense"])
def test_an_index_that_does_not_answer_is_told_without_a_traceback(
    tmp_path: Path, asked: str
) -> None:
    done = fetch(tmp_path, index=asked, hashes=["0" * 64])
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_wheel_without_the_program_is_told(tmp_path: Path) -> None:
    made = wheel(tmp_path / "index/uv", "uv/__init__.py")
    page(tmp_path / "index/uv", NAME)
    with served(tmp_path / "index") as index:
        done = fetch(tmp_path, index=index, hashes=[sha256(made)])
    assert (done.returncode, "the wheel does not contain the program uv" in done.stderr) == (
        1,
        True,
    )


def test_a_device_with_an_index_needs_no_pip_for_uv(bench: Bench) -> None:
    made = wheel(bench.cloud.folder / "index/uv")
    page(bench.cloud.folder / "index/uv", NAME)
    (bench.machine.work / "device.pyz").write_bytes(device_files.workbench_zipapp())
    (bench.folder / "bin/uv").unlink()
    found = bench.locked(uv={"version": "9.9.9", "files": {NAME: sha256(made)}}).find_uv()
    assert found == str(bench.folder / "home/.provision/tools/uv-9.9.9/bin/uv")
    assert not (bench.folder / "home/.provision/tools/uv-9.9.9.txt").exists(), (
        "pip was asked for nothing"
    )
