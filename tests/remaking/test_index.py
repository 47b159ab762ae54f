"""The torch table agrees with the wheels on the package index of this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import require

ROOT = Path(__file__).parents[2]
LONGEST = 60
"""Seconds."""


@pytest.mark.long
@pytest.mark.network
def test_the_six_newest_releases_of_torch_are_as_the_table_has_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Read anew, with an empty cache; a release that the table lacks fails here first."""
    command = [
        sys.executable,
        "support/remake_torch.py",
        "--check",
        "--newest",
        "6",
        "--cache",
        str(tmp_path),
    ]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=False
        )
        code, told, said = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, told, said = (
            2,
            "",
            f"the package index did not give what was asked within {LONGEST} seconds",
        )
    require("index", code != 2, said.strip())
    with capfd.disabled():
        print(f"\n{said.strip()}: {' '.join(told.split())}")
    assert code == 0, told
