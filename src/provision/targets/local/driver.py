"""A local environment made by uv, or by conda and uv: beside the spec, named by what it holds,
whole or not there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.effects.conda import CondaProgram
from provision.effects.local import (
    CreateVenv,
    Damage,
    InstallPackages,
    InstallPython,
    MakeFolder,
    RemoveTree,
    ReplaceSymlink,
    WriteFile,
)
from provision.effects.packages import Index, Pin, PythonSearchResult
from provision.effects.system import Effect, Reader
from provision.errors import Refused
from provision.facts import load_facts
from provision.lock import LockedPackage
from provision.plan import Action, Operation
from provision.refusals import find_target_refusals
from provision.spec import LocalTarget, Spec
from provision.state import Ledger, to_folder_name
from provision.targets.base import Interpreter, Refusal, TargetContext
from provision.targets.local import conda_link as conda_name
from provision.targets.local import conda_prefix as conda
from provision.targets.local.conda_link import CondaLink
from provision.targets.local.conda_prefix import uses_conda
from provision.targets.local.environment_drift import (
    describe_damage,
    find_damage,
    find_drift,
    join_limited,
    read_json,
)
from provision.targets.local.kernel_launcher import build_kernel_argv
from provision.targets.recorded_paths import (
    build_kernel_name,
    plan_kernel_removal,
    resolve_own_folder,
)

MARKER_FILE = "provision.json"
_MARKER_SCHEMA = "provision.environment/1"
_LIMIT = 2**20


@dataclass(frozen=True, slots=True)
class LocalObservation:
    """What was found: Pythons, the environment on disk and in the state, what differs in it
    (packages, and the files of packages), the kernel's text.

    `users` are the programs that run in it. Of environments of earlier locks, `kept` are the
    recorded paths of those in use, `ended` of those that are not.
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
        """What differs in it from what was installed, in words: packages, then files."""
        return (*self.drift, *describe_damage(self.damage))


class LocalDriver:
    """Environments on this machine (see provision.targets.Target)."""

    platform: str | None = None

    def observe(self, place: TargetContext, ledger: Ledger, reader: Reader) -> LocalObservation:
        """Return what this machine has of the place."""
        path = _path(place)
        marker = read_json(path / MARKER_FILE, reader)
        interrupted = ledger.find_interrupted(place.address)
        needed = {
            "Python": "bin/python",
            **({} if uses_conda(place) else {"pyvenv.cfg": "pyvenv.cfg"}),
        }
        gone = next((name for name, file in needed.items() if not reader.exists(path / file)), "")
        begun = interrupted is not None and f"envs/{path.name}" in interrupted.paths
        whole = marker == _marker(place) and not gone and not begun
        kernel_folder = _kernels_folder(reader.environment()) / build_kernel_name(
            place.address, place.folder
        )
        kernel_file = kernel_folder / "kernel.json"
        recorded = ledger.state.resource(place.address, "environment")
        recorded_name = ledger.state.resource(place.address, conda_name.CONDA_LINK_PART)
        program = conda.find_conda_program(place, reader)
        ours = (
            marker is not None or begun or f"envs/{path.name}" in (recorded or {}).get("paths", ())
        )
        earlier = tuple(
            old for old in _recorded_environments(recorded) if old != f"envs/{path.name}"
        )
        kept = tuple(
            old
            for old in earlier
            if reader.find_running_programs(resolve_own_folder(place.folder, old, place.address))
        )
        flaw = "an interrupted run left it half-made"
        if marker is not None and not begun:
            flaw = (
                f"its {gone or 'Python'} is gone"
                if marker.get("prefix") == str(path)
                else f"it was made at {marker.get('prefix')} and cannot be moved"
            )
        return LocalObservation(
            pythons=reader.find_pythons(place.spec.python),
            exists=reader.exists(path),
            is_complete=whole,
            drift=find_drift(place, path, reader) if whole else (),
            damage=find_damage(place, path, ledger, reader) if whole else Damage(),
            is_linked=read_json(_stable_path(place) / MARKER_FILE, reader) == marker,
            recorded=recorded,
            recorded_kernel=ledger.state.resource(place.address, "kernel"),
            interrupted=interrupted is not None,
            problem=flaw,
            kernel_text=reader.read(kernel_file, _LIMIT).decode("utf-8", "replace")
            if reader.exists(kernel_file)
            else None,
            kernel_folder=kernel_folder,
            writable=reader.is_writable(place.folder),
            missing_system_packages=reader.missing_system_packages(
                tuple(place.spec.system_packages)
            ),
            conda=program,
            conda_link=conda_name.find_conda_link(
                place, _stable_path(place), recorded_name, program, reader
            ),
            recorded_conda_link=recorded_name,
            is_foreign=reader.exists(path) and not ours,
            running_programs=reader.find_running_programs(path),
            environments_in_use=kept,
            unused_environments=tuple(old for old in earlier if old not in kept),
        )

    def refusals(self, place: TargetContext, have: LocalObservation) -> tuple[Refusal, ...]:
        """Return what the spec asks for that cannot be done here."""
        of_conda = (
            conda.find_conda_refusals(place, have.conda, _path(place) if have.is_foreign else None)
            if uses_conda(place)
            else ()
        )
        return (
            *_spec_refusals(place.spec, place.target, place.platform),
            *_machine_refusals(place, have),
            *of_conda,
        )

    def plan(self, place: TargetContext, have: LocalObservation) -> tuple[Action, ...]:
        """Return the actions: an interpreter if none fits, the environment, its name for conda, the
        kernel.
        """
        name = conda_name.plan_conda_link(place, have.conda_link, have.recorded_conda_link)
        return tuple(
            action
            for action in (
                _python(place, have),
                _environment(place, have),
                name,
                _kernel(place, have),
            )
            if action
        )

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that remove the environments, links and kernel of an address, and
        nothing else.
        """
        actions = []
        parts = ledger.state.parts(address)
        interrupted = ledger.find_interrupted(address)
        if interrupted is not None and interrupted.part == conda_name.CONDA_LINK_PART:
            parts.setdefault(conda_name.CONDA_LINK_PART, interrupted.details)
        for part in sorted(
            parts, key=lambda part: part == conda_name.CONDA_LINK_PART
        ):  # the name last, when nothing is there that it leads to
            record = parts[part]
            earlier = tuple(record.get("earlier", ()))
            recorded = (*record.get("paths", ()), *earlier)
            if (
                part == "environment" and "verification" not in parts
            ):  # interrupted before its report was recorded
                recorded = (*recorded, f"reports/{to_folder_name(address)}")
            effects: tuple[Effect, ...] = tuple(
                RemoveTree(resolve_own_folder(folder, path, address)) for path in recorded
            )
            effects = (
                (*effects, *conda_name.plan_link_removal(record))
                if part == conda_name.CONDA_LINK_PART
                else effects
            )
            outside = plan_kernel_removal(record, address)
            title = record.get("title", part) + "".join(
                f", and {Path(path).name} of an earlier lock" for path in earlier
            )
            actions.append(
                Action(
                    Operation.DESTROY,
                    address,
                    part,
                    title,
                    "destroy was asked for",
                    (*outside, *effects),
                )
            )
        if interrupted is not None and interrupted.part != conda_name.CONDA_LINK_PART:
            effects = tuple(
                RemoveTree(resolve_own_folder(folder, path, address)) for path in interrupted.paths
            )
            actions.insert(
                0,
                Action(
                    Operation.DESTROY,
                    address,
                    interrupted.part,
                    "half-made environment",
                    "an interrupted run left it",
                    effects,
                ),
            )
        return tuple(actions)

    def get_interpreter(self, place: TargetContext) -> Interpreter:
        """Return where programs run: the environment of the lock on this platform, by its stable
        path too.
        """
        return Interpreter(_path(place) / "bin/python", _path(place), _stable_path(place))

    def get_environment_variables(
        self, place: TargetContext, caller: Mapping[str, str], *, partial: bool = False
    ) -> dict[str, str]:
        """Return env, PROVISION_PATH_* and secrets of the spec; a secret whose variable is not set
        raises Refused, or is left out when `partial`.
        """
        return {**declared_variables(place.spec), **_secrets(place.spec, caller, partial=partial)}


def declared_variables(spec: Spec) -> dict[str, str]:
    """Return the variables that stand in the spec: `env`, and PROVISION_PATH_<NAME> for each path."""  # noqa: E501
    return {
        **spec.env,
        **{f"PROVISION_PATH_{name.upper()}": path for name, path in spec.paths.items()},
    }


def _python(place: TargetContext, have: LocalObservation) -> Action | None:
    if have.pythons.selected is not None or uses_conda(place):
        return None
    minor = place.spec.python
    return Action(
        Operation.CREATE,
        place.address,
        "python",
        f"python {minor}, by uv",
        f"no Python {minor} on this machine",
        (InstallPython(minor),),
    )


def _environment(place: TargetContext, have: LocalObservation) -> Action:
    path = _path(place)
    held = place.lock.packages_in(place.environment)
    torch = next((f", torch {package.version}" for package in held if package.name == "torch"), "")
    built = [package.name for package in held if package.built]
    source = f", {' and '.join(built)} built from source" if built else ""
    brought = place.lock.conda_records_in(place.environment)
    of_conda = f", {len(brought)} of conda by {have.conda.name}" if brought and have.conda else ""
    title = (
        f"environment {path.name} (python {place.spec.python}, {len(held)} "
        f"packages{torch}{source}{of_conda})"
    )
    moved = have.recorded is not None and _recorded_environments(have.recorded)[:1] != (
        f"envs/{path.name}",
    )
    record = {
        "title": title,
        "kind": "local",
        "manager": "conda" if uses_conda(place) else "uv",
        "paths": [f"envs/{path.name}", f"envs/{_stable_path(place).name}"],
        "digest": place.environment.digest,
    }
    record |= {
        "lock": place.lock.digest,
        "python": place.spec.python,
        **({"earlier": list(have.environments_in_use)} if have.environments_in_use else {}),
    }

    notes = tuple(f"{old} stays until its program ends" for old in have.environments_in_use)

    def act(verb: Operation, because: str, effects: tuple[Effect, ...] = ()) -> Action:
        return Action(verb, place.address, "environment", title, because, effects, record, notes)

    link = ReplaceSymlink(_stable_path(place), path.name)
    removal = tuple(
        RemoveTree(resolve_own_folder(place.folder, old, place.address))
        for old in have.unused_environments
    )
    if have.is_complete and not have.differences:
        if have.recorded and not moved and have.is_linked and not removal:
            return act(
                Operation.KEEP,
                f"packages are as locked, files as installed (by {have.damage.compared_by})",
            )
        if have.recorded is None or moved:
            because = "a whole environment of this lock is there already"
        else:
            because = (
                "the programs that ran in an earlier one have ended"
                if have.is_linked
                else "its stable path is missing"
            )
        return act(Operation.CHANGE, because, (link, *removal))
    make = tuple(_creation_effects(place, have, held))
    # What conda has lost only conda can put back; files are links, so it is soon done. What no
    # package lists no installer takes away.
    if have.differences and (uses_conda(place) or have.damage.startup_files):
        return act(Operation.REPLACE, _describe_changes(have), (*make, link, *removal))
    if have.differences:
        again = tuple(name for name, _ in have.damage.packages)
        put_right = InstallPackages(
            path,
            place.spec.python,
            tuple(_pin(package) for package in held),
            _indexes(place, held),
            reinstall=again,
        )
        return act(Operation.CHANGE, _describe_changes(have), (put_right, link, *removal))
    if moved:
        return act(
            Operation.REPLACE,
            "the lock holds other packages than it was made from",
            (*make, link, *removal),
        )
    because = have.problem if have.exists or have.interrupted else "there is none yet"
    return act(
        Operation.REPLACE if have.recorded and have.exists else Operation.CREATE,
        because,
        (*make, link, *removal),
    )


def _recorded_environments(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the recorded paths of environments: the current one, and those of earlier locks that
    were in use.
    """
    return (*(record or {}).get("paths", ())[:1], *(record or {}).get("earlier", ()))


def _describe_changes(have: LocalObservation) -> str:
    return f"it was changed since it was made: {join_limited(have.differences)}"


def _creation_effects(
    place: TargetContext, have: LocalObservation, held: tuple[LockedPackage, ...]
) -> Iterator[Effect]:
    path = _path(place)
    if have.exists:
        yield RemoveTree(path)
    yield MakeFolder(path.parent, 0o700)
    if uses_conda(place) and have.conda is not None:
        yield conda.build_prefix_effect(place, have.conda)._replace(path=path)
    else:
        yield CreateVenv(path, place.spec.python)
    yield InstallPackages(
        path,
        place.spec.python,
        tuple(_pin(package) for package in held),
        _indexes(place, held),
        shared=uses_conda(place),
    )
    # Last, so that an environment with this file is whole.
    yield WriteFile(path / MARKER_FILE, json.dumps(_marker(place), indent=1, sort_keys=True) + "\n")


def _pin(package: LockedPackage) -> Pin:
    index = None if package.index == "pypi" else package.index
    return Pin(
        package.name,
        package.version,
        index,
        tuple(file.sha256 for file in package.files),
        package.built,
    )


def _indexes(place: TargetContext, held: tuple[LockedPackage, ...]) -> tuple[Index, ...]:
    used = {
        package.index: tuple(f"{p.name}=={p.version}" for p in held if p.index == package.index)
        for package in held
        if package.index != "pypi"
    }
    flavours = {f"pytorch-{place.environment.flavour}": place.environment.flavour}
    return tuple(
        Index(name, place.lock.indexes[name], flavours.get(name), pins, (place.platform,))
        for name, pins in sorted(used.items())
    )


def _kernel(place: TargetContext, have: LocalObservation) -> Action | None:
    target = place.spec.targets[place.target]
    wanted = isinstance(target, LocalTarget) and target.kernel
    name = build_kernel_name(place.address, place.folder)
    if not wanted:
        if have.recorded_kernel is None:
            return None
        gone = plan_kernel_removal(have.recorded_kernel, place.address)
        return Action(
            Operation.DESTROY,
            place.address,
            "kernel",
            f"Jupyter kernel {name}",
            "the spec no longer asks for it",
            gone,
        )
    text = _kernel_text(place)
    record = {"title": f"Jupyter kernel {name}", "name": name, "outside": [str(have.kernel_folder)]}
    if (
        have.kernel_text == text
        and have.recorded_kernel is not None
        and have.recorded_kernel.get("outside") == record["outside"]
    ):
        return Action(
            Operation.KEEP,
            place.address,
            "kernel",
            f"Jupyter kernel {name}",
            "it is as declared",
            (),
            record,
        )
    verb = Operation.CREATE if have.kernel_text is None else Operation.CHANGE
    elsewhere = tuple(
        effect
        for effect in plan_kernel_removal(have.recorded_kernel or {}, place.address)
        if effect.path != have.kernel_folder
    )
    effects: tuple[Effect, ...] = (
        *elsewhere,
        MakeFolder(have.kernel_folder),
        WriteFile(have.kernel_folder / "kernel.json", text),
    )
    return Action(
        verb,
        place.address,
        "kernel",
        f"Jupyter kernel {name}",
        "the spec says kernel: true",
        effects,
        record,
    )


def _kernel_text(place: TargetContext) -> str:
    # ${NAME} is filled in by Jupyter from its own environment, so no secret is written down; a $ of
    # the author's is doubled to stay one.
    secrets = {
        name: f"${{{reference.env}}}"
        for name, reference in place.spec.secrets.items()
        if reference.env
    }
    declared = {
        name: value.replace("$", "$$") for name, value in declared_variables(place.spec).items()
    }
    prefix = _stable_path(place)
    document = {
        "argv": build_kernel_argv(str(prefix / "bin/python")),
        "display_name": f"{place.spec.name} ({place.target})",
        "language": "python",
        "env": {
            **declared,
            **secrets,
            "CONDA_PREFIX" if uses_conda(place) else "VIRTUAL_ENV": str(prefix),
            "PATH": f"{prefix / 'bin'}:${{PATH}}",
        },
        "metadata": {"provision": {"environment_digest": place.environment.digest}},
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _kernels_folder(environment: Mapping[str, str]) -> Path:
    """Return Jupyter's user folder of kernels. Source: jupyter_core.paths.jupyter_data_dir."""
    if data := environment.get("JUPYTER_DATA_DIR"):
        return Path(data) / "kernels"
    home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111
    if sys.platform == "darwin":
        return home / "Library/Jupyter/kernels"
    return Path(environment.get("XDG_DATA_HOME") or home / ".local/share") / "jupyter/kernels"


def _spec_refusals(spec: Spec, target: str, platform: str) -> Iterator[Refusal]:
    yield from find_target_refusals(spec, target, load_facts())
    if spec.gpu.type == "mps" and not platform.startswith("macos"):
        yield Refusal(
            ("gpu",),
            f"mps is Apple silicon, and this machine is {platform}",
            "write gpu: none, or name the card",
        )


def _machine_refusals(place: TargetContext, have: LocalObservation) -> Iterator[Refusal]:
    known = have.pythons
    if known.selected is None and not known.is_downloadable and not uses_conda(place):
        found = (
            ", ".join(f"{python.version} ({python.path})" for python in known.installed) or "none"
        )
        why = f"no Python {known.requested} on this machine, and {known.why_not}; found: {found}"
        yield Refusal(("python",), why, f"install Python {known.requested}, or change `python`")
    if os.pathsep in str(place.folder):
        yield Refusal(
            (),
            f"the folder {place.folder} has a {os.pathsep!r} in its name, which PATH cannot hold",
            "put the spec in another folder",
        )
    if not place.spec.gpu.is_none and "torch" not in {
        *place.lock.versions(place.environment),
        *conda.list_python_names(place),
    }:
        yield Refusal(
            ("gpu",),
            f"gpu: {place.spec.gpu} cannot be shown to compute without torch",
            "add torch to `packages`, or write gpu: none",
        )
    if have.running_programs and have.exists and (have.differences or not have.is_complete):
        what = _describe_changes(have) if have.is_complete else have.problem
        why = (
            f"the environment has to be repaired ({what}) and is in use: "
            f"{', '.join(have.running_programs)}"
        )
        yield Refusal(
            (),
            why,
            "end that program, or remove the environment under it: "
            f"{place.command('destroy')} --force",
        )
    if not have.writable:
        yield Refusal(
            (),
            f"the folder {place.folder} cannot be written to",
            "put the spec in a folder that you may write to",
        )
    if have.missing_system_packages is None and place.spec.system_packages:
        yield Refusal(
            ("system_packages",),
            "whether they are installed cannot be told here (no dpkg)",
            "remove the field for this machine and install them by its own means",
        )
    elif have.missing_system_packages:
        names = " ".join(have.missing_system_packages)
        yield Refusal(
            ("system_packages",),
            f"not installed on this machine: {names}",
            f"sudo apt-get install {names}",
        )


def _secrets(spec: Spec, caller: Mapping[str, str], *, partial: bool) -> dict[str, str]:
    values = {}
    for name, reference in spec.secrets.items():
        if not reference.env or not caller.get(reference.env):
            if partial:
                continue
            raise Refused(
                f"the secret {name} has no value",
                why=f"the variable {reference.env} is not set or empty",
                hint=f"export {reference.env}=... and run again",
            )
        values[name] = caller[reference.env]
    return values


def _marker(place: TargetContext) -> dict[str, Any]:
    return {
        "schema": _MARKER_SCHEMA,
        "spec": place.stem,
        "target": place.target,
        "digest": place.environment.digest,
        "prefix": str(_path(place)),
    }


def _path(place: TargetContext) -> Path:
    return (
        place.folder
        / "envs"
        / f"{place.stem}.{place.target}-{place.environment.digest.removeprefix('sha256:')[:12]}"
    )


def _stable_path(place: TargetContext) -> Path:
    return place.folder / "envs" / f"{place.stem}.{place.target}"
