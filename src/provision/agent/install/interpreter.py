"""The target interpreter: its version, package folders, and whether another installer owns it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.process import ProcessResult
from .document import InstallError

_ASK = """
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
class Interpreter:
    """An interpreter: folders of packages in sys.path's order; another installer's marker or ""."""

    python: str
    minor: str
    package_folders: tuple[str, ...]
    managed_marker: str


def inspect_interpreter(
    python: str, environment: Mapping[str, str], run: RunProcess
) -> Interpreter:
    """Return what an interpreter reports about itself. Raises InstallError if it does not answer.

    The user's own packages and PYTHONPATH are left out.

    The marker counts outside virtual environments only. Source: packaging.python.org,
    "Externally Managed Environments".
    """
    hint = "name an interpreter that starts"
    try:
        answer = run([python, "-I", "-c", _ASK], environment, None)
        told = json.loads(answer.stdout) if answer.code == 0 else None
    except OSError as error:
        raise InstallError(
            f"cannot start the interpreter {python}", error.strerror or str(error), hint
        ) from None
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise InstallError(
            f"the interpreter {python} does not say where its packages are",
            answer.stderr.strip()[-500:] or f"exit code {answer.code}",
            hint,
        )
    marker = os.path.join(told["stdlib"], EXTERNALLY_MANAGED_FILE)
    entries = tuple(dict.fromkeys(os.path.realpath(entry) for entry in told["entries"] if entry))
    return Interpreter(
        python,
        told["minor"],
        entries,
        marker if not told["venv"] and os.path.isfile(marker) else "",
    )
