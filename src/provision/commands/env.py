"""Describe a machine: the probe looks at it from the Python of the user's programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import provision
from provision.errors import ExternalError, ProvisionError
from provision.verification import probe_zipapp

_SCHEMA = "provision.env/1"
_MINIMUM_PYTHON = "3.10"
_TIMEOUT_S = 60.0
_WITH_TORCH_S = 240.0


class ProcessResult(Protocol):
    """How a program ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str


RunPython = Callable[..., Any]
"""Runs an island in an interpreter: (python, parcel, words, environment, timeout_s=...) to an
Answer. Raises WorldError.
"""


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """A machine as `provision.env/1`, and a remark on the Python that was used."""

    document: Mapping[str, Any]
    remark: str = ""


def env(
    python: Path | None, environ: Mapping[str, str], own: Path, ask: RunPython, *, with_torch: bool
) -> MachineInfo:
    """Return what this machine is, seen from a Python.

    Args:
        python: The interpreter; None for the first on the PATH, or `own` if that fails.
        environ: The environment variables.
        own: provision's own interpreter.
        ask: Runs the probe.
        with_torch: Import torch and ask it too.

    Raises:
        ExternalError: the named interpreter cannot run the probe.
    """
    if python is not None:
        return MachineInfo(
            _read_machine_info(
                _resolve_interpreter(python, environ), environ, ask, with_torch=with_torch
            )
        )
    found = next(
        (
            path
            for name in ("python3", "python")
            if (path := shutil.which(name, path=environ.get("PATH")))
        ),
        None,
    )
    if found is None:
        return MachineInfo(
            _read_machine_info(own, environ, ask, with_torch=with_torch),
            "there is no Python on the PATH; provision's own was asked",
        )
    try:
        return MachineInfo(_read_machine_info(Path(found), environ, ask, with_torch=with_torch))
    except ProvisionError as error:
        remark = f"the Python on the PATH was not asked, but provision's own: {error.what}"
        return MachineInfo(_read_machine_info(own, environ, ask, with_torch=with_torch), remark)


def _resolve_interpreter(python: Path, environ: Mapping[str, str]) -> Path:
    """Return the interpreter of a path, a name on the PATH, or an environment's folder."""
    if python.is_dir():
        return python.absolute() / "bin" / "python"
    named = shutil.which(str(python), path=environ.get("PATH"))
    return Path(named).absolute() if named else python.absolute()


def _read_machine_info(
    python: Path, environ: Mapping[str, str], ask: RunPython, *, with_torch: bool
) -> dict[str, Any]:
    words = ("env", "--output-format", "json", *(("--torch",) if with_torch else ()))
    answer: ProcessResult = ask(
        python,
        probe_zipapp(),
        words,
        environ,
        timeout_s=_WITH_TORCH_S if with_torch else _TIMEOUT_S,
    )
    try:
        document = json.loads(answer.stdout)
    except (ValueError, RecursionError):
        document = None
    if answer.code or not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        how = f"ended by signal {-answer.code}" if answer.code < 0 else f"exit code {answer.code}"
        said = (answer.stderr or answer.stdout).strip().splitlines()
        why = f"{how}: {said[-1][:300]}" if said else how
        hint = f"it has to be Python {_MINIMUM_PYTHON} or newer; name another with --python"
        raise ExternalError(f"{python} cannot run the probe", why=why, hint=hint)
    return {**document, "tool": {"name": "provision", "version": provision.__version__}}
