"""The Python that a person uses in a folder: of an active environment, of `.venv`, or on PATH."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from provision.adapters.process import capture

_CONFIGURED = re.compile(r"^version(?:_info)?\s*=\s*(3\.\d+)", re.MULTILINE)
_PROGRAM = re.compile(r"python(3\.\d+)(?:\.exe)?")
_MAX_BYTES = 4096
_TIMEOUT_S = 5
"""A Python prints its version in 20 ms; a slow disk may take seconds. Our choice."""


class CurrentPython(NamedTuple):
    """A Python as major.minor ("" if unknown), and its environment's folder or its program."""

    version: str
    path: Path


def find_current_python(environment: Mapping[str, str], folder: Path) -> CurrentPython:
    """Return the Python of a folder; the one that runs this program if there is none.

    An environment is read, not run: its pyvenv.cfg has the version. A `python3` is run if neither
    its folder nor its name has the version.
    """
    program = shutil.which("python3", path=environment.get("PATH"))
    for environment_folder in _environment_folders(environment, folder, program):
        if version := _read_configuration(environment_folder / "pyvenv.cfg"):
            return CurrentPython(version, environment_folder)
    if program is None:
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        return CurrentPython(own, Path(sys.executable))
    if named := _PROGRAM.fullmatch(Path(program).resolve().name):
        return CurrentPython(named[1], Path(program))
    return CurrentPython(_run_python(program, environment), Path(program))


def _environment_folders(
    environment: Mapping[str, str], folder: Path, program: str | None
) -> Iterator[Path]:
    if active := environment.get("VIRTUAL_ENV"):
        yield Path(active)
    if not environment.get("CONDA_PREFIX"):
        yield folder / ".venv"
    if program is not None:
        yield Path(program).parent.parent


def _read_configuration(path: Path) -> str:
    if not path.is_file():  # reading a named pipe would wait for its writer
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            found = _CONFIGURED.search(file.read(_MAX_BYTES))
    except OSError:
        return ""
    return found[1] if found else ""


def _run_python(program: str, environment: Mapping[str, str]) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        result = capture([program, "-I", "-S", "-c", code], environment, timeout_s=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = result.stdout.strip()
    return version if result.code == 0 and re.fullmatch(r"3\.\d+", version) else ""
