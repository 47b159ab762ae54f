"""make keeps to its folder, wherever that lies: run for real, with programs that only note how they were called."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

NOTE = """#!/bin/sh
echo "$(basename "$0") $* | $TMPDIR | $PIP_CACHE_DIR" >> notes
if [ "$2" = venv ]; then mkdir -p .venv/bin; for name in python ruff mypy lint-imports; do cp "$0" .venv/bin/$name; done; fi
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_everything_that_make_test_runs_keeps_its_files_in_the_checkout(tmp_path: Path) -> None:
    folder = tmp_path / "a checkout"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "pyproject.toml").touch()
    python = tmp_path / "my python"
    python.write_text(NOTE)
    python.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "PIP_", "TMPDIR"))}
    done = subprocess.run(["make", "test"], cwd=folder, env={**environment, "PYTHON": str(python)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    notes = [line.split(" | ") for line in (folder / "notes").read_text().splitlines()]
    assert [words for words, *_ in notes if "pip install" in words or "pytest" in words]
    assert len(notes) == 9
    assert {(temporary, cache) for _, temporary, cache in notes} == {(str(folder / ".cache/tmp"), str(folder / ".cache/pip"))}
    assert (folder / ".cache/tmp").is_dir()
