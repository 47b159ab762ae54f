"""Installs missing system packages on a notebook's machine, which needs root."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence

from ..core.process import ProcessResult, run_process
from ..core.system_packages import APT_VARIABLES, find_missing_packages, install_packages
from .errors import StageError

_TIMEOUT_S = 1800.0


def find_missing_system_packages(names: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the packages that are not installed. Raises StageError on a system without dpkg."""
    if names and shutil.which("dpkg-query", path=environ.get("PATH")) is None:
        raise StageError(
            "cannot check the system packages",
            "this system has no dpkg",
            "install them with the system's package manager, and remove them from "
            "`system_packages`",
        )
    return find_missing_packages(names, lambda argv: run_process(argv, 60, environ))


def install_system_packages(
    names: Sequence[str], environ: Mapping[str, str], heartbeat: Callable[[float], None]
) -> None:
    """Install packages with apt-get. Raises StageError."""
    if os.geteuid() != 0:
        raise StageError(
            f"system packages are missing: {', '.join(names)}",
            "only root can install them, and this kernel does not run as root",
            f"ask an administrator of this machine to run: apt-get install {' '.join(names)}",
        )
    variables = {**environ, **APT_VARIABLES}
    answer = install_packages(
        names, lambda argv: run_process(argv, _TIMEOUT_S, variables, heartbeat=heartbeat)
    )
    if answer.code:
        raise StageError(
            f"cannot install the system packages {', '.join(names)}",
            _error_lines(answer),
            "run the cell again with network access, or correct `system_packages` in the spec",
        )


def _error_lines(answer: ProcessResult) -> str:
    lines = answer.output_tail.splitlines()
    errors = [line for line in lines if re.match(r"(E|Err|W):", line)]
    return "\n".join((errors or lines)[-4:])
