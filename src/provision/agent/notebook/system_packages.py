"""Packages of the system: only those that are missing are installed, by apt, and only as root."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence

from .errors import StageError
from .process import ProcessResult, run_process

_INSTALL_S = 1800.0


def find_missing_system_packages(packages: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return those that dpkg does not know as installed. Raises Stopped where there is no dpkg."""
    if not packages:
        return []
    if shutil.which("dpkg-query", path=environ.get("PATH")) is None:
        raise StageError(
            "system packages cannot be told here",
            "there is no dpkg on this system",
            "install them by its own means, and take them out of the spec",
        )
    answer = run_process(
        ["dpkg-query", "--show", "--showformat=${binary:Package} ${Status}\\n", *packages],
        60,
        environ,
    )
    there = {
        line.split()[0].partition(":")[0]
        for line in answer.stdout.splitlines()
        if line.endswith("install ok installed")
    }
    return [name for name in packages if name not in there]


def install_system_packages(
    names: Sequence[str], environ: Mapping[str, str], beat: Callable[[float], None]
) -> None:
    """Install packages by apt. Raises Stopped."""
    by_hand = f"ask who owns this machine for: apt-get install {' '.join(names)}"
    if os.geteuid() != 0:
        raise StageError(
            f"system packages are missing: {', '.join(names)}",
            "only root can install them, and this kernel does not run as root",
            by_hand,
        )
    quiet = {**environ, "DEBIAN_FRONTEND": "noninteractive"}
    words = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "--", *names]
    answer = run_process(words, _INSTALL_S, quiet, beat=beat)
    if answer.code:
        # The lists of an image are those of the day it was made, or none.
        update = run_process(["apt-get", "update", "--quiet"], _INSTALL_S, quiet, beat=beat)
        answer = run_process(words, _INSTALL_S, quiet, beat=beat) if update.code == 0 else update
    if answer.code:
        hint = (
            "run the cell again when the network is there, or correct system_packages in the spec"
        )
        raise StageError(
            f"cannot install the system packages {', '.join(names)}", _words(answer), hint
        )


def _words(answer: ProcessResult) -> str:
    lines = [
        line for line in answer.output_tail.splitlines() if re.match(r"(E|Err|W):", line)
    ] or answer.output_tail.splitlines()
    return "\n".join(lines[-4:])
