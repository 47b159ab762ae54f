"""The target interpreter: its version, package folders, and whether another installer owns it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.process import ProcessResult
from .document import InstallError

_PROGRAM = """
import json, sys, sysconfig
paths = sysconfig.get_paths()
new = [path for path in (paths["purelib"], paths["platlib"]) if path not in sys.path]
answer = {
    "minor": "%d.%d" % sys.version_info[:2],
    "entries": new + sys.path,
    "stdlib": paths["stdlib"],
    "venv": sys.prefix != sys.base_prefix,
}
sys.stdout.write(json.dumps(answer))
"""
EXTERNALLY_MANAGED_FILE = "EXTERNALLY-MANAGED"


RunProcess = Callable[["list[str]", Mapping[str, str], "Path | None"], ProcessResult]
"""Runs a program (arguments, variables, folder) to its end. Raises OSError if it cannot start."""


@dataclass(frozen=True, slots=True)
class TargetInterpreter:
    """An interpreter: folders of packages in sys.path's order; another installer's marker or ""."""

    python: str
    minor: str
    package_folders: tuple[str, ...]
    managed_marker: str


def inspect_interpreter(
    python: str, environment: Mapping[str, str], run: RunProcess
) -> TargetInterpreter:
    """Return what an interpreter reports about itself. Raises InstallError if it does not answer.

    The user's own packages and PYTHONPATH are left out.

    The marker counts outside virtual environments only. Source: packaging.python.org,
    "Externally Managed Environments".
    """
    hint = "name an interpreter that starts"
    try:
        result = run([python, "-I", "-c", _PROGRAM], environment, None)
    except OSError as error:
        raise InstallError(
            f"cannot start the interpreter {python}", error.strerror or str(error), hint
        ) from None
    try:
        paths = json.loads(result.stdout) if result.code == 0 else None
    except ValueError:
        paths = None
    if not isinstance(paths, dict):
        raise InstallError(
            f"the interpreter {python} does not say where its packages are",
            result.stderr.strip()[-500:] or f"exit code {result.code}",
            hint,
        )
    marker = os.path.join(paths["stdlib"], EXTERNALLY_MANAGED_FILE)
    is_managed = not paths["venv"] and os.path.isfile(marker)
    folders = tuple(dict.fromkeys(os.path.realpath(entry) for entry in paths["entries"] if entry))
    return TargetInterpreter(python, paths["minor"], folders, marker if is_managed else "")
