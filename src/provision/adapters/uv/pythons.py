"""Finds, downloads and uses Python interpreters through uv."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from provision.adapters.process import capture
from provision.adapters.uv.errors import python_install_error
from provision.adapters.uv.program import clean_output, query_uv, run_uv
from provision.effects.local import CreateVenv, InstallPython
from provision.effects.packages import PythonInstallation

_VERSION_PROGRAM = "import platform; print(platform.python_version())"
_ALLOW_DOWNLOADS = {"UV_PYTHON_DOWNLOADS": "manual"}


def create_venv(effect: CreateVenv, interpreter: Path, environment: Mapping[str, str]) -> None:
    """Create an empty virtual environment in place of anything at its path."""
    options = ["--quiet", "--clear", "--python", str(interpreter)]
    run_uv(["venv", *options, str(effect.path)], environment)


def install_python(effect: InstallPython, environment: Mapping[str, str]) -> None:
    """Download a managed CPython: the only call that may download an interpreter."""
    # Not --quiet, which leaves out why it failed.
    result = query_uv(
        ["python", "install", "--no-progress", effect.minor], {**environment, **_ALLOW_DOWNLOADS}
    )
    if result.code != 0:
        raise python_install_error(effect.minor, clean_output(result.stderr))


def find_python(minor: str, environment: Mapping[str, str]) -> Path | None:
    """Return an interpreter of this minor version outside virtual environments, or None."""
    result = query_uv(["python", "find", "--system", minor], environment)
    return Path(result.stdout.strip()) if result.code == 0 else None


def python_version(python: Path, environment: Mapping[str, str]) -> str | None:
    """Return the full version of an interpreter, None if it does not answer within 20 s."""
    try:
        result = capture(
            [str(python), "-I", "-S", "-c", _VERSION_PROGRAM], environment, timeout_s=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.code == 0 else None


def list_pythons(environment: Mapping[str, str]) -> tuple[PythonInstallation, ...]:
    """Return every CPython that uv finds on this machine."""
    result = query_uv(
        ["python", "list", "--only-installed", "--output-format", "json"], environment
    )
    return tuple(
        PythonInstallation(row["version"], Path(row["path"]))
        for row in json.loads(result.stdout or "[]")
        if row["implementation"] == "cpython" and row["path"]
    )


def why_not_downloadable(minor: str, environment: Mapping[str, str], downloads: str = "") -> str:
    """Return why uv cannot download this minor version, "" if it can. Needs no network.

    `downloads` is the caller's UV_PYTHON_DOWNLOADS.
    """
    if downloads.lower() == "never":
        return "UV_PYTHON_DOWNLOADS=never keeps uv from fetching one"
    if environment.get("UV_OFFLINE"):
        return "--offline keeps uv from fetching one"
    result = query_uv(
        ["python", "list", minor, "--only-downloads", "--output-format", "json"],
        {**environment, **_ALLOW_DOWNLOADS},
    )
    if result.code != 0:
        return f"uv cannot list its downloads: {' '.join(clean_output(result.stderr).split())}"
    if json.loads(result.stdout or "[]"):
        return ""
    return "uv has no download of it for this machine"
