"""`require`: a missing thing skips with its reason, or fails where it was promised."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import require

ROOT = Path(__file__).parent.parent
PROGRAM = (
    "import sys; sys.path.insert(0, '.'); from tests.support import require; "
    "require('browser', False, 'no browser here')"
)


def test_present_goes_on() -> None:
    require("browser", True, "unused")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="none of browser, root, npm, index"):
        require("gpu", True, "unused")


@pytest.mark.parametrize(
    ("promised", "outcome"),
    [("", "Skipped"), ("npm,root", "Skipped"), ("browser", "Failed"), ("root, browser", "Failed")],
)
def test_missing_skips_or_fails(promised: str, outcome: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "REQUIRE": promised},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stderr
    assert "no browser here" in done.stderr
