"""Observation of a local environment: what exists, its drift from the lock, and refusals."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from provision.agent.core.versions import is_same_version
from provision.effects.conda import CondaProgram
from provision.effects.local import Damage
from provision.effects.packages import PythonSearchResult
from provision.effects.system import Reader
from provision.facts import load_facts
from provision.kinds.base import Refusal
from provision.spec import Spec
from provision.state import Ledger, build_kernel_name, resolve_own_folder
from provision.target_facts import find_target_refusals
from provision.targets.context import TargetContext, refuse_untestable_gpu
from provision.targets.local.code import find_code_problem
from provision.targets.local.conda import (
    INSTALL_RECORD,
    CondaLink,
    find_conda_drift,
    find_conda_link,
    list_python_names,
    read_python_packages,
    uses_conda,
)
from provision.targets.local.preflight import preflight_notes
from provision.targets.local.records import (
    MARKER_FILE,
    CodeRecord,
    CondaLinkRecord,
    EnvironmentRecord,
    KernelRecord,
    build_marker,
    environment_path,
    stable_path,
)
from provision.targets.stored_verdict import VerificationRecord, list_changed_files

_MAX_FILE_BYTES = 2**20
_MAX_NAMED = 3
"""Differences that are named; of more the number is given."""


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
        edited: Packages whose content is not the installed one.
        edited_files: Their changed files, as far as the verification recorded them.
        code_problem: Why the code of a repository has to be unpacked; "" for nothing.
        preflight: Notes on this machine and the download, if it is not complete.
    """

    pythons: PythonSearchResult
    exists: bool
    is_complete: bool
    drift: tuple[str, ...]
    damage: Damage
    is_linked: bool
    recorded: EnvironmentRecord | None
    recorded_kernel: KernelRecord | None
    interrupted: bool
    problem: str
    kernel_text: str | None
    kernel_folder: Path
    writable: bool
    missing_system_packages: tuple[str, ...] | None
    conda: CondaProgram | None = None
    conda_link: CondaLink | None = None
    recorded_conda_link: CondaLinkRecord | None = None
    is_foreign: bool = False
    running_programs: tuple[str, ...] = ()
    environments_in_use: tuple[str, ...] = ()
    unused_environments: tuple[str, ...] = ()
    preflight: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    edited_files: tuple[str, ...] = ()
    code_problem: str = ""
    recorded_code: CodeRecord | None = None

    @property
    def differences(self) -> tuple[str, ...]:
        """The differences from what was installed: packages, then files."""
        packages = (f"{name}: {join_limited(flaws, '; ')}" for name, flaws in self.damage.packages)
        foreign = (
            f"{name}, which Python reads at startup, belongs to no package"
            for name in self.damage.startup_files
        )
        return (*self.drift, *packages, *foreign)


def observe_environment(context: TargetContext, ledger: Ledger, reader: Reader) -> LocalObservation:
    """Return what exists of a target on this machine."""
    path = environment_path(context)
    marker = _read_json(path / MARKER_FILE, reader)
    missing = _missing_part(context, reader)
    interrupted = ledger.find_interrupted(context.address)
    begun = interrupted is not None and f"envs/{path.name}" in interrupted.paths
    current = build_marker(context)
    edited = _find_edited(marker, current)
    if edited and marker is not None:
        current = {**current, "sources": marker["sources"]}
    complete = marker == current and not missing and not begun
    exists = reader.exists(path)
    recorded = EnvironmentRecord.find(ledger.state, context.address)
    is_recorded = recorded is not None and f"envs/{path.name}" in recorded.paths
    link = CondaLinkRecord.find(ledger.state, context.address)
    conda = reader.conda_program() if uses_conda(context) else None
    kernel_name = build_kernel_name(context.address, context.folder)
    kernel_folder = _kernels_folder(reader.environment()) / kernel_name
    kernel_file, kernel_text = kernel_folder / "kernel.json", None
    if reader.exists(kernel_file):
        kernel_text = reader.read(kernel_file, _MAX_FILE_BYTES).decode("utf-8", "replace")
    in_use, unused = _earlier_environments(context, recorded, reader)
    return LocalObservation(
        pythons=reader.find_pythons(context.spec.python),
        exists=exists,
        is_complete=complete,
        drift=_find_drift(context, path, reader) if complete else (),
        damage=_find_damage(context, path, ledger, reader) if complete else Damage(),
        is_linked=_read_json(stable_path(context) / MARKER_FILE, reader) == marker,
        recorded=recorded,
        recorded_kernel=KernelRecord.find(ledger.state, context.address),
        interrupted=interrupted is not None,
        problem=_describe_problem(path, None if begun else marker, missing),
        kernel_text=kernel_text,
        kernel_folder=kernel_folder,
        writable=reader.is_writable(context.folder),
        missing_system_packages=reader.missing_system_packages(tuple(context.spec.system_packages)),
        conda=conda,
        conda_link=find_conda_link(context, stable_path(context), link, conda, reader),
        recorded_conda_link=link,
        is_foreign=exists and marker is None and not begun and not is_recorded,
        running_programs=reader.find_running_programs(path),
        environments_in_use=in_use,
        unused_environments=unused,
        preflight=() if complete else preflight_notes(context, reader),
        edited=edited if complete else (),
        edited_files=_find_edited_files(context, ledger, edited),
        code_problem=find_code_problem(context, reader),
        recorded_code=CodeRecord.find(ledger.state, context.address),
    )


def _find_edited(marker: Mapping[str, Any] | None, current: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the packages whose content has another digest than the installed ones."""
    installed = marker.get("sources") if marker is not None else None
    digests = current.get("sources", {})
    if not isinstance(installed, dict) or installed.keys() != digests.keys():
        return ()
    return tuple(name for name, digest in digests.items() if digest != installed[name])


def _find_edited_files(
    context: TargetContext, ledger: Ledger, edited: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the changed files of packages, by path from the spec's folder."""
    if not edited:
        return ()
    stored = VerificationRecord.find(ledger.state, context.address)
    folders = [source.path for source in context.sources if source.name in edited and source.path]
    home = Path(context.spec_path).resolve().parent
    return tuple(
        path
        for path in list_changed_files(stored, context)
        if any(Path(os.path.normpath(home / path)).is_relative_to(folder) for folder in folders)
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
        return "an interrupted run left it incomplete"
    if marker.get("prefix") != str(path):
        return f"it was created in {marker.get('prefix')} and cannot be moved"
    return f"its {missing or 'Python'} is missing"


def _earlier_environments(
    context: TargetContext, recorded: EnvironmentRecord | None, reader: Reader
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the recorded environments of earlier locks: those in use, and the others."""
    current = f"envs/{environment_path(context).name}"
    in_use: list[str] = []
    unused: list[str] = []
    for earlier in recorded.environments if recorded is not None else ():
        if earlier == current:
            continue
        path = resolve_own_folder(context.folder, earlier, context.address)
        programs = reader.find_running_programs(path)
        (in_use if programs else unused).append(earlier)
    return tuple(in_use), tuple(unused)


def _kernels_folder(environment: Mapping[str, str]) -> Path:
    """Return Jupyter's user folder of kernels. Source: jupyter_core.paths.jupyter_data_dir."""
    if data := environment.get("JUPYTER_DATA_DIR"):
        return Path(data) / "kernels"
    home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111
    if sys.platform == "darwin":
        return home / "Library/Jupyter/kernels"
    return Path(environment.get("XDG_DATA_HOME") or home / ".local/share") / "jupyter/kernels"


def _find_drift(context: TargetContext, path: Path, reader: Reader) -> tuple[str, ...]:
    """Return the packages that were removed, changed or added by hand, by the records on disk."""
    installed: dict[str, str] = {}
    for entry in reader.list_folder(path / f"lib/python{context.spec.python}/site-packages"):
        if entry.endswith(".dist-info"):
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            installed[canonicalize_name(name)] = version
    locked = _locked_versions(context, path, reader)
    drift: list[str] = []
    if uses_conda(context):
        drift += find_conda_drift(context, reader.list_folder(path / "conda-meta"))
    drift += [f"{name} is missing" for name in locked if name not in installed]
    for name, version in locked.items():
        if name in installed and not is_same_version(installed[name], version):
            drift.append(f"{name} is {installed[name]}, not {version}")
    expected = locked.keys() | list_python_names(context)
    drift += [f"{name} was added" for name in installed if name not in expected]
    return tuple(drift)


def _find_damage(context: TargetContext, path: Path, ledger: Ledger, reader: Reader) -> Damage:
    """Return how the files of the packages differ from what was installed.

    After a failed verification every file is read for that.
    """
    stored = VerificationRecord.find(ledger.state, context.address)
    return reader.find_damage(
        path,
        context.spec.python,
        tuple(sorted(_locked_versions(context, path, reader))),
        hashed=stored is not None and stored.verdict == "failed",
        shared=uses_conda(context),
    )


def _locked_versions(context: TargetContext, path: Path, reader: Reader) -> dict[str, str]:
    """Return the versions of all packages that the environment should have, also of conda."""
    versions = {}
    if uses_conda(context):
        install_record = _read_json(path / INSTALL_RECORD, reader)
        versions = read_python_packages(context, install_record)
    return {**versions, **context.lock.versions(context.environment)}


def describe_changes(observed: LocalObservation) -> str:
    """Return what was changed in an environment since it was made."""
    return f"it was changed after it was created: {join_limited(observed.differences)}"


def join_limited(differences: tuple[str, ...], between: str = ", ") -> str:
    """Return the first of some differences, and how many more there are."""
    more = len(differences) - _MAX_NAMED
    return between.join(differences[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _read_json(path: Path, reader: Reader) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if it is missing or damaged."""
    if not reader.exists(path):
        return None
    try:
        document = json.loads(reader.read(path, _MAX_FILE_BYTES))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def find_spec_refusals(spec: Spec, target: str, platform: str) -> Iterator[Refusal]:
    """Yield the fields that no local target can honour."""
    yield from find_target_refusals(spec, target, load_facts())
    if spec.gpu.type == "mps" and not platform.startswith("macos"):
        yield Refusal(
            ("gpu",),
            f"`gpu: mps` requires Apple silicon, but this machine is {platform}",
            "set `gpu: none`, or the name of the GPU",
        )


def find_machine_refusals(context: TargetContext, observed: LocalObservation) -> Iterator[Refusal]:
    """Yield the fields that this machine cannot honour, and what stands in the way of a repair."""
    pythons = observed.pythons
    if pythons.selected is None and not pythons.is_downloadable and not uses_conda(context):
        paths = [f"{python.version} ({python.path})" for python in pythons.installed]
        installed = ", ".join(paths) or "none"
        why = (
            f"there is no Python {pythons.requested} on this machine, and {pythons.why_not}; "
            f"found: {installed}"
        )
        yield Refusal(("python",), why, f"install Python {pythons.requested}, or change `python`")
    if os.pathsep in str(context.folder):
        yield Refusal(
            (),
            f"the path {context.folder} contains {os.pathsep!r}, which cannot be in PATH",
            "move the spec to a different folder",
        )
    yield from refuse_untestable_gpu(context, list_python_names(context))
    is_repaired = observed.exists and (observed.differences or not observed.is_complete)
    if observed.running_programs and is_repaired:
        what = describe_changes(observed) if observed.is_complete else observed.problem
        why = (
            f"the environment needs a repair ({what}) but is in use by "
            f"{', '.join(observed.running_programs)}"
        )
        yield Refusal(
            (),
            why,
            f"stop the program, or remove the environment anyway: {context.command('destroy')} "
            "--force",
        )
    if not observed.writable:
        yield Refusal(
            (),
            f"the folder {context.folder} is not writable",
            "move the spec to a writable folder",
        )
    if observed.missing_system_packages is None and context.spec.system_packages:
        yield Refusal(
            ("system_packages",),
            "cannot check whether the system packages are installed: this machine has no dpkg",
            "install them with this machine's package manager, and remove the field",
        )
    elif observed.missing_system_packages:
        names = " ".join(observed.missing_system_packages)
        yield Refusal(
            ("system_packages",),
            f"not installed on this machine: {names}",
            f"sudo apt-get install {names}",
        )
