"""make writes only below its checkout: run with programs that record how they are called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

KEPT = ("TMPDIR", "UV_CACHE_DIR", "PIP_CACHE_DIR", "HF_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
NOTE = f"""#!/bin/sh
echo "$(basename "$0") $* | {" | ".join(f"${name}" for name in KEPT)}" >> "$NOTES"
if [ "$2" = venv ]; then
  mkdir -p .venv/bin
  for name in python ruff mypy lint-imports codespell provision; do cp "$0" .venv/bin/$name; done
fi
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run make in a checkout with little but its Makefile."""
    folder = tmp_path / "a checkout"
    (folder / "support").mkdir(parents=True)
    (folder / "tests/lock").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / "support/run_tests.sh", folder / "support")
    shutil.copytree(ROOT / "specs", folder / "specs")
    (folder / "pyproject.toml").touch()
    python = tmp_path / "my python"
    python.write_text(NOTE)
    python.chmod(0o755)
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("MAKE", "MFLAGS", *KEPT))
    }
    environment = {**kept, "PYTHON": str(python), "NOTES": str(tmp_path / "notes"), **variables}
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def notes(tmp_path: Path) -> list[tuple[str, dict[str, str]]]:
    """Every command that make started, with the variables that say where it writes."""
    lines = (line.split(" | ") for line in (tmp_path / "notes").read_text().splitlines())
    return [(command, dict(zip(KEPT, folders, strict=True))) for command, *folders in lines]


@pytest.mark.parametrize("arguments", [("test",), ("test-quick",), ("test-long",)])
def test_everything_that_make_starts_keeps_its_files_in_the_checkout(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = make(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    started = notes(tmp_path)
    assert any("-m pip install" in command for command, _ in started)
    assert any("-m pytest" in command for command, _ in started)
    cache = tmp_path / "a checkout/.cache"
    outside = [
        (command, name)
        for command, folders in started
        for name, folder in folders.items()
        if cache not in (Path(folder), *Path(folder).parents)
    ]
    assert outside == []
    assert (cache / "tmp").is_dir()


def test_what_each_command_runs(tmp_path: Path) -> None:
    def pytest_of(name: str, *arguments: str) -> str:
        done = make(tmp_path / name, *arguments)
        assert done.returncode == 0, done.stderr
        (command,) = (command for command, _ in notes(tmp_path / name) if "-m pytest" in command)
        return command

    assert "--quick" not in pytest_of("all", "test")
    assert "--quick" in pytest_of("quick", "test-quick")
    assert " tests/lock " in pytest_of("one", "test-quick", "PKG=lock")
    assert "--long=all -m long" in pytest_of("long", "test-long")
    assert any("ruff check" in command for command, _ in notes(tmp_path / "all"))


def test_a_package_without_tests_is_refused(tmp_path: Path) -> None:
    done = make(tmp_path, "test-quick", "PKG=nonesuch")
    assert done.returncode == 2
    assert (
        "no test imports provision.nonesuch: name a package of src/provision, as in PKG=lock"
        in done.stderr
    )


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the emulated instance needs Linux")


@LINUX
def test_sandbox_installs_the_extras_and_applies_a_copy_of_the_example(tmp_path: Path) -> None:
    done = make(tmp_path, "sandbox")
    assert done.returncode == 0, done.stdout + done.stderr
    commands = [command for command, _ in notes(tmp_path)]
    assert commands[-2:] == [
        "python -m pip install --quiet --editable .[workbench,sandbox]",
        "provision apply workbench-l4.yaml --sandbox --yes",
    ]
    checkout = tmp_path / "a checkout"
    assert (checkout / ".cache/sandbox/workbench-l4.yaml").read_bytes() == (
        checkout / "specs/workbench-l4.yaml"
    ).read_bytes()


@LINUX
def test_sandbox_names_the_package_of_a_program_that_is_missing(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in (
        "make",
        "sh",
        "mkdir",
        "cp",
        "touch",
        "basename",
        "uname",
        "getconf",
        "cat",
        "rm",
        "mount",
        "umount",
        "pivot_root",
        "curl",
        "python3",
    ):
        (tools / name).symlink_to(shutil.which(name) or "/bin/true")
    done = make(tmp_path, "sandbox", PATH=str(tools))
    assert done.returncode == 2
    assert "unshare is missing; on Debian and Ubuntu: apt-get install util-linux" in done.stdout
    assert not any("provision" in command for command, _ in notes(tmp_path))


@LINUX
@pytest.mark.long(minutes=True)
@pytest.mark.network
def test_sandbox_runs_the_example_in_a_fresh_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, timeout=600)
    done = subprocess.run(
        ["make", "sandbox", f"PYTHON={sys.executable}"],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "SIMULATED" in done.stdout
    changed = subprocess.run(
        ["git", "status", "--porcelain"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert changed.stdout == ""
