"""The program on an instance as a file of its own, and the shell programs as they lie in the
repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import provision
from provision.verification.device_files import installer_zipapp, probe_zipapp, workbench_zipapp

PACKAGE = Path(provision.__file__).parent
ROOT = Path(__file__).parents[3]
SCRIPTS = sorted([*(ROOT / "templates").glob("*.sh"), *(PACKAGE / "sandbox").glob("*.sh")])


def test_it_starts_on_every_promised_python(tmp_path: Path, pythons: list[str]) -> None:
    (tmp_path / "device.pyz").write_bytes(workbench_zipapp())
    for python in pythons:
        done = subprocess.run(
            [python, "-I", "-S", str(tmp_path / "device.pyz"), "run", "--help"],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, (python, done.stderr)
        assert "--document" in done.stdout


def test_its_file_has_the_same_bytes_every_time_and_is_none_of_the_others() -> None:
    assert workbench_zipapp() == workbench_zipapp()
    assert len({workbench_zipapp(), installer_zipapp(), probe_zipapp()}) == 3


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shell_programs_lint_and_are_laid_out_as_they_lie(script: Path) -> None:
    for words in (["shellcheck", str(script)], ["shfmt", "-d", str(script)]):
        done = subprocess.run(
            [str(Path(sys.executable).with_name(words[0])), *words[1:]],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_no_spec_value_has_a_place_in_a_shell_program() -> None:
    assert SCRIPTS
    for script in SCRIPTS:
        text = script.read_text()
        assert "{{" not in text, script
        assert not re.search(r"\beval\b", text), script
        assert os.access(script, os.X_OK), script
