"""Observation of a local environment: Pythons, files on disk, the record in the state, drift."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.effects.conda import CondaProgram
from provision.effects.local import Damage
from provision.effects.packages import PythonSearchResult
from provision.effects.system import Reader
from provision.state import Ledger
from provision.targets.context import TargetContext
from provision.targets.local.conda_link import CONDA_LINK_PART, CondaLink, find_conda_link
from provision.targets.local.conda_prefix import find_conda_program, uses_conda
from provision.targets.local.environment_drift import (
    describe_damage,
    find_damage,
    find_drift,
    read_json,
)
from provision.targets.local.paths import (
    MARKER_FILE,
    build_marker,
    environment_path,
    recorded_environments,
    stable_path,
)
from provision.targets.recorded_paths import build_kernel_name, resolve_own_folder

_LIMIT = 2**20


@dataclass(frozen=True, slots=True)
class LocalObservation:
    """A local environment on disk and in the state.

    Attributes:
        is_complete: It was made from this lock, and no run was interrupted in it.
        drift: Packages that differ from the lock.
        damage: Files that differ from what was installed.
        is_linked: The stable path leads to it.
        problem: Why it is not complete.
        is_foreign: Something else exists at its path.
        running_programs: Programs that run in it.
        environments_in_use: Recorded environments of earlier locks in which a program runs.
        unused_environments: The other environments of earlier locks.
    """

    pythons: PythonSearchResult
    exists: bool
    is_complete: bool
    drift: tuple[str, ...]
    damage: Damage
    is_linked: bool
    recorded: Mapping[str, Any] | None
    recorded_kernel: Mapping[str, Any] | None
    interrupted: bool
    problem: str
    kernel_text: str | None
    kernel_folder: Path
    writable: bool
    missing_system_packages: tuple[str, ...] | None
    conda: CondaProgram | None = None
    conda_link: CondaLink | None = None
    recorded_conda_link: Mapping[str, Any] | None = None
    is_foreign: bool = False
    running_programs: tuple[str, ...] = ()
    environments_in_use: tuple[str, ...] = ()
    unused_environments: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[str, ...]:
        """The differences from what was installed: packages, then files."""
        return (*self.drift, *describe_damage(self.damage))


def observe_environment(context: TargetContext, ledger: Ledger, reader: Reader) -> LocalObservation:
    """Return what exists of a target on this machine."""
    path = environment_path(context)
    marker = read_json(path / MARKER_FILE, reader)
    missing = _missing_part(context, reader)
    interrupted = ledger.find_interrupted(context.address)
    begun = interrupted is not None and f"envs/{path.name}" in interrupted.paths
    complete = marker == build_marker(context) and not missing and not begun
    exists = reader.exists(path)
    recorded = ledger.state.resource(context.address, "environment")
    recorded_here = f"envs/{path.name}" in (recorded or {}).get("paths", ())
    link = ledger.state.resource(context.address, CONDA_LINK_PART)
    conda = find_conda_program(context, reader)
    kernel_folder = _kernels_folder(reader.environment()) / build_kernel_name(
        context.address, context.folder
    )
    in_use, unused = _earlier_environments(context, recorded, reader)
    return LocalObservation(
        pythons=reader.find_pythons(context.spec.python),
        exists=exists,
        is_complete=complete,
        drift=find_drift(context, path, reader) if complete else (),
        damage=find_damage(context, path, ledger, reader) if complete else Damage(),
        is_linked=read_json(stable_path(context) / MARKER_FILE, reader) == marker,
        recorded=recorded,
        recorded_kernel=ledger.state.resource(context.address, "kernel"),
        interrupted=interrupted is not None,
        problem=_describe_problem(path, None if begun else marker, missing),
        kernel_text=_read_kernel(kernel_folder / "kernel.json", reader),
        kernel_folder=kernel_folder,
        writable=reader.is_writable(context.folder),
        missing_system_packages=reader.missing_system_packages(tuple(context.spec.system_packages)),
        conda=conda,
        conda_link=find_conda_link(context, stable_path(context), link, conda, reader),
        recorded_conda_link=link,
        is_foreign=exists and marker is None and not begun and not recorded_here,
        running_programs=reader.find_running_programs(path),
        environments_in_use=in_use,
        unused_environments=unused,
    )


def _missing_part(context: TargetContext, reader: Reader) -> str:
    """Return what is missing of the environment; "" when its main files exist."""
    path = environment_path(context)
    if not reader.exists(path / "bin/python"):
        return "Python"
    if not uses_conda(context) and not reader.exists(path / "pyvenv.cfg"):
        return "pyvenv.cfg"
    return ""


def _describe_problem(path: Path, marker: Mapping[str, Any] | None, missing: str) -> str:
    if marker is None:
        return "an interrupted run left it half-made"
    if marker.get("prefix") != str(path):
        return f"it was made at {marker.get('prefix')} and cannot be moved"
    return f"its {missing or 'Python'} is gone"


def _earlier_environments(
    context: TargetContext, recorded: Mapping[str, Any] | None, reader: Reader
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the recorded environments of earlier locks: those in use, and the others."""
    current = f"envs/{environment_path(context).name}"
    in_use: list[str] = []
    unused: list[str] = []
    for earlier in recorded_environments(recorded):
        if earlier == current:
            continue
        path = resolve_own_folder(context.folder, earlier, context.address)
        programs = reader.find_running_programs(path)
        (in_use if programs else unused).append(earlier)
    return tuple(in_use), tuple(unused)


def _read_kernel(path: Path, reader: Reader) -> str | None:
    if not reader.exists(path):
        return None
    return reader.read(path, _LIMIT).decode("utf-8", "replace")


def _kernels_folder(environment: Mapping[str, str]) -> Path:
    """Return Jupyter's user folder of kernels. Source: jupyter_core.paths.jupyter_data_dir."""
    if data := environment.get("JUPYTER_DATA_DIR"):
        return Path(data) / "kernels"
    home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111
    if sys.platform == "darwin":
        return home / "Library/Jupyter/kernels"
    return Path(environment.get("XDG_DATA_HOME") or home / ".local/share") / "jupyter/kernels"
