"""The Python that a person uses in a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from provision.adapters.current_python import find_current_python

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


def make_environment(folder: Path, version: str, key: str = "version") -> Path:
    folder.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = /usr\n{key} = {version}\n")
    return folder


def make_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path.parent


def test_an_active_environment_comes_before_that_of_the_folder(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv", "3.10.1")
    active = make_environment(tmp_path / "active", "3.13.0.final.0", "version_info")
    variables = {"PATH": "", "VIRTUAL_ENV": str(active)}
    assert find_current_python(variables, tmp_path) == ("3.13", active)
    assert find_current_python({"PATH": ""}, tmp_path) == ("3.10", tmp_path / ".venv")
    assert find_current_python({"PATH": "", "VIRTUAL_ENV": "/gone"}, tmp_path).version == "3.10"


def test_a_python_on_path_is_read_from_its_environment_or_its_name(tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "other", "3.12.9")
    never = "#!/bin/sh\nexit 1\n"
    folder = make_program(environment / "bin/python3", never)
    assert find_current_python({"PATH": str(folder)}, tmp_path).version == "3.12"
    make_program(tmp_path / "usr/bin/python3.14", never)
    (tmp_path / "usr/bin/python3").symlink_to("python3.14")
    python = tmp_path / "usr/bin/python3"
    assert find_current_python({"PATH": str(python.parent)}, tmp_path) == ("3.14", python)


@pytest.mark.parametrize(
    ("program", "version"),
    [
        (f'#!/bin/sh\nexec {sys.executable} "$@"\n', OWN),
        ("#!/bin/sh\necho 3.9\n", "3.9"),
        ("#!/bin/sh\nexit 1\n", ""),
        ("#!/bin/sh\necho '3.9; rm -r /'\n", ""),
        ("no program", ""),
    ],
)
def test_a_python_without_a_version_in_a_file_is_run(
    tmp_path: Path, program: str, version: str
) -> None:
    folder = make_program(tmp_path / "bin/python3", program)
    assert find_current_python({"PATH": str(folder)}, tmp_path).version == version


def test_without_a_python_it_is_the_one_that_runs_this_program(tmp_path: Path) -> None:
    assert find_current_python({"PATH": str(tmp_path)}, tmp_path) == (OWN, Path(sys.executable))


def test_a_named_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    os.mkfifo(tmp_path / ".venv/pyvenv.cfg")
    assert find_current_python({"PATH": str(tmp_path)}, tmp_path).version == OWN


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"version = 2.7\n", b"version = ../x\n"])
def test_a_damaged_configuration_is_ignored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/pyvenv.cfg").write_bytes(content)
    assert find_current_python({"PATH": str(tmp_path)}, tmp_path).version == OWN
