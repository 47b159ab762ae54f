"""Runs the user's program with the caller's terminal and signals."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from provision.adapters.diagnostic_log import log
from provision.adapters.process import exec_program
from provision.errors import ExternalError

if TYPE_CHECKING:
    from provision.effects.local import MonitorRequest


def run_in_terminal(
    argv: list[str],
    environment: Mapping[str, str],
    watch: MonitorRequest | None,
    folder: Path | None = None,
) -> int:
    """Run a program with the caller's terminal and signals, and return its exit code.

    `argv[0]` is its path. Without `watch`, or elsewhere than on Linux, this process becomes the
    program.

    Raises:
        ExternalError: the program cannot be started.
    """
    log.info("run %s in the terminal", argv[0])  # its arguments may be secrets
    try:
        if watch is None or sys.platform != "linux":
            if folder is not None:
                os.chdir(folder)
            exec_program(argv, environment)
        from provision.adapters.monitored_process import run_monitored

        return run_monitored(argv, environment, watch, folder)
    except OSError as error:
        hint = ""
        if error.errno == errno.ENOEXEC:
            hint = "a script must start with a line such as #!/usr/bin/env python3"
        why = os.strerror(error.errno or 0)
        raise ExternalError(f"cannot start {argv[0]}", why=why, hint=hint) from error


def program_not_found(name: str) -> ExternalError:
    """Return the error for a name that is not a program, with the name to use instead."""
    if Path(name).is_dir():
        return ExternalError(
            f"cannot start {name}", why="it is a folder", hint="use the name of a program"
        )
    if "/" in name and Path(name).exists():
        return ExternalError(
            f"cannot start {name}",
            why="the file is not executable",
            hint=f"make it executable with `chmod +x {shlex.quote(name)}`, or run it with its "
            f"interpreter, for example `python {shlex.quote(name)}`",
        )
    hint = "check the spelling, or add the package that provides it"
    if Path(name).is_file():
        command = shlex.quote(f"./{name}")
        if name.endswith(".py"):
            command = f"python {shlex.quote(name)}"
        hint = f"to run the file in this folder, use {command}"
    return ExternalError(
        f"there is no program called {name}",
        why="it is neither in the environment nor on PATH",
        hint=hint,
    )
