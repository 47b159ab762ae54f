"""Explains why an interpreter could not run a program of provision."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from provision.errors import ExternalError, ProvisionError

if TYPE_CHECKING:
    from provision.agent.core.process import ProcessResult

_PYTHON_NAME = re.compile(r"python|pypy", re.IGNORECASE)
_VERSION_PROGRAM = b'print("python %d.%d" % __import__("sys").version_info[:2])\n'
"""Runs in every Python, also in Python 2; a shell refuses it."""
_TIMEOUT_S = 10.0
_MINIMUM = "3.10"


def interpreter_error(
    python: Path,
    failure: str,
    result: ProcessResult,
    environment: Mapping[str, str],
    run_program: Callable[..., ProcessResult],
) -> ExternalError:
    """Return the error of an interpreter that did not print what it should.

    A program that is not called python is run once more, to see whether it is a Python.

    Args:
        python: The interpreter.
        failure: What it cannot do, such as "cannot create a capture".
        result: What it printed, and its exit code.
        environment: The environment variables.
        run_program: Runs a program, as `adapters.zipapp_runner.run_zipapp` does.
    """
    is_named_python = _PYTHON_NAME.match(python.name) is not None
    if not is_named_python and not _is_python(python, environment, run_program):
        return ExternalError(
            f"{python} is not a Python interpreter",
            why="it did not print a Python version",
            hint="select a Python with --python, as in --python .venv/bin/python",
        )
    why = f"ended by signal {-result.code}" if result.code < 0 else f"exit code {result.code}"
    if lines := (result.stderr or result.stdout).strip().splitlines():
        why += f": {lines[-1][:300]}"
    hint = f"use Python {_MINIMUM} or newer; select one with --python"
    return ExternalError(f"{python} {failure}", why=why, hint=hint)


def _is_python(
    python: Path, environment: Mapping[str, str], run_program: Callable[..., ProcessResult]
) -> bool:
    try:
        result = run_program(python, _VERSION_PROGRAM, (), environment, timeout_s=_TIMEOUT_S)
    except ProvisionError:
        return False
    return re.fullmatch(r"python \d+\.\d+\s*", result.stdout) is not None
