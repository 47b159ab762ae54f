"""Finds the user's own conda, mamba or micromamba, and creates prefixes with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from provision.adapters import files
from provision.adapters.process import capture
from provision.effects.conda import CondaProgram, CreateCondaPrefix
from provision.errors import ExternalError, LockError
from provision.sanitize import escape_control, redact

PROGRAM_VARIABLE = "PROVISION_CONDA"
"""Names the program to use; `py-rattler` for the one in our own process."""
PY_RATTLER = "py-rattler"
_PROGRAM_VARIABLES = (("CONDA_EXE", "conda"), ("MAMBA_EXE", "micromamba"))
_PIXI = "pixi"
_PIXI_LIMIT = "creates environments only from projects, not from a list of files"
_TIMEOUT_S = 60
_NOT_REGISTERED = {"CONDA_REGISTER_ENVS": "false"}
"""Keeps a prefix out of conda's ~/.conda/environments.txt, where each update would add a line."""
_ON_PATH = ("conda", "mamba", "micromamba")


def find_program(environment: Mapping[str, str]) -> CondaProgram | None:
    """Return the program that creates conda environments, None without py-rattler.

    In this order: the program that PROVISION_CONDA names, the user's own, py-rattler. pixi is not
    supported, since it creates environments of projects and not of a list of files.

    Raises:
        ExternalError: PROVISION_CONDA is not the name of a program, or is pixi.
    """
    if find_spec("rattler") is None:
        return None
    if program_name := environment.get(PROGRAM_VARIABLE):
        return _program_from_variable(program_name, environment)
    for variable, name in _PROGRAM_VARIABLES:
        path = Path(environment.get(variable) or os.devnull)
        if path.is_file() and os.access(path, os.X_OK):
            known_name = path.name if path.name in _ON_PATH else name
            return CondaProgram(known_name, path, f"set by {variable}")
    for name in _ON_PATH:
        if program := shutil.which(name, path=environment.get("PATH")):
            return CondaProgram(name, Path(program), "found on PATH")
    reason = "no conda, mamba or micromamba was found"
    if pixi := shutil.which(_PIXI, path=environment.get("PATH")):
        reason += f"; {pixi} {_PIXI_LIMIT}; py-rattler is the library that pixi is built on"
    return CondaProgram(PY_RATTLER, None, reason)


def create_prefix_with_program(
    effect: CreateCondaPrefix, urls: Sequence[str], environment: Mapping[str, str], *, offline: bool
) -> None:
    """Let the user's own program create a prefix of exactly the locked files.

    The program checks the md5 of each file: these programs support no other hash in such a list.

    Args:
        effect: the prefix.
        urls: the address of each record's file, without credentials.
        environment: the caller's variables.
        offline: use the program's cache only.

    Raises:
        LockError: the prefix has other packages than the locked ones.
        ExternalError: the program failed.
    """
    name = effect.program.name
    lines = ["@EXPLICIT"]
    for url, record in zip(urls, effect.records, strict=True):
        lines.append(f"{url}#{record.md5}" if record.md5 else url)
    with tempfile.TemporaryDirectory(prefix="provision-") as folder:
        listed = Path(folder) / "explicit.txt"
        files.write(listed, "\n".join(lines) + "\n", 0o600)
        argv = create_arguments(effect.program, effect.path, listed, offline=offline)
        result = capture(argv, _without_active_environment(environment))
    if result.code != 0:
        output = redact(escape_control(result.output_tail[-2000:]))
        raise ExternalError(
            f"{name} could not create the environment",
            why=output or f"it exited with code {result.code} and printed nothing",
            hint=f"set {PROGRAM_VARIABLE}={PY_RATTLER} to create the environment without {name}",
        )
    _refuse_other_packages(effect)


def environment_folders(program: CondaProgram, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders in which the user's conda looks for environments, () if unknown."""
    try:
        argv = [str(program.path), "info", "--json"]
        document = json.loads(
            capture(argv, _without_active_environment(environment), timeout_s=_TIMEOUT_S).stdout
        )
    except (OSError, ValueError, RecursionError, subprocess.TimeoutExpired):
        return ()
    if not isinstance(document, dict):
        return ()
    listed = document.get("envs_dirs") or document.get("envs directories") or ()
    return tuple(
        Path(folder) for folder in listed if isinstance(folder, str) and Path(folder).is_absolute()
    )


def create_arguments(
    program: CondaProgram, path: Path, listed: Path, *, offline: bool
) -> list[str]:
    """Return the command line that creates a prefix from a list of files without questions."""
    argv = [str(program.path), "create", "--yes", "--quiet"]
    if program.name == "conda":
        argv.append("--no-default-packages")
    if offline:
        argv.append("--offline")
    return [*argv, "--prefix", str(path), "--file", str(listed)]


def _program_from_variable(program_name: str, environment: Mapping[str, str]) -> CondaProgram:
    if program_name == PY_RATTLER:
        return CondaProgram(PY_RATTLER, None, f"set by {PROGRAM_VARIABLE}")
    path = shutil.which(program_name, path=environment.get("PATH"))
    if path is None:
        raise ExternalError(
            f"{PROGRAM_VARIABLE}={program_name} is not a program",
            why="no executable with this name was found",
            hint=f"set the variable to the path of conda, or to {PY_RATTLER}",
        )
    if Path(path).stem == _PIXI:
        raise ExternalError(
            f"{PROGRAM_VARIABLE}={program_name} cannot create the environment",
            why=f"pixi {_PIXI_LIMIT}",
            hint=f"set {PROGRAM_VARIABLE} to {PY_RATTLER} or to the path of conda",
        )
    return CondaProgram(Path(path).name, Path(path), f"set by {PROGRAM_VARIABLE}")


def _without_active_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's variables without those of the active environment."""
    active = ("CONDA_PREFIX", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV")
    kept = {key: value for key, value in environment.items() if key not in active}
    for key in environment:
        if key.startswith("PYTHON"):
            del kept[key]
    return kept | _NOT_REGISTERED


def _refuse_other_packages(effect: CreateCondaPrefix) -> None:
    meta = effect.path / "conda-meta"
    installed = {path.stem for path in meta.glob("*.json")} if meta.is_dir() else set()
    locked = {record.stem for record in effect.records}
    if installed != locked:
        differ = ", ".join(sorted(installed ^ locked)[:6])
        hint = f"check the program's configuration, or set {PROGRAM_VARIABLE}={PY_RATTLER}"
        raise LockError(
            f"{effect.program.name} created an environment that differs from the lock",
            why=f"these packages differ: {differ}",
            hint=hint,
        )
