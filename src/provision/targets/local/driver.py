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

from provision.effects import (
    CondaProgram,
    CreateVenv,
    Damage,
    Effect,
    Index,
    InstallPackages,
    InstallPython,
    MakeFolder,
    Pin,
    PythonSearchResult,
    Reader,
    RemoveTree,
    ReplaceSymlink,
    WriteFile,
)
from provision.errors import Refused
from provision.lock import LockedPackage
from provision.plan import Action, Operation
from provision.spec import LocalTarget, Spec
from provision.state import Ledger, to_folder_name
from provision.targets.base import Interpreter, Refusal, TargetContext
from provision.targets.common_refusals import NOT_SUPPORTED_YET, find_common_refusals
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

    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> LocalObservation:
        """Return what this machine has of the place."""
        path = _path(context)
        marker = read_json(path / MARKER_FILE, reader)
        interrupted = ledger.find_interrupted(context.address)
        needed = {
            "Python": "bin/python",
            **({} if uses_conda(context) else {"pyvenv.cfg": "pyvenv.cfg"}),
        }
        gone = next((name for name, file in needed.items() if not reader.exists(path / file)), "")
        begun = interrupted is not None and f"envs/{path.name}" in interrupted.paths
        whole = marker == _marker(context) and not gone and not begun
        kernel_folder = _kernels_folder(reader.environment()) / build_kernel_name(
            context.address, context.folder
        )
        kernel_file = kernel_folder / "kernel.json"
        recorded = ledger.state.resource(context.address, "environment")
        recorded_name = ledger.state.resource(context.address, conda_name.CONDA_LINK_PART)
        program = conda.find_conda_program(context, reader)
        ours = (
            marker is not None or begun or f"envs/{path.name}" in (recorded or {}).get("paths", ())
        )
        earlier = tuple(
            old for old in _recorded_environments(recorded) if old != f"envs/{path.name}"
        )
        kept = tuple(
            old
            for old in earlier
            if reader.find_running_programs(
                resolve_own_folder(context.folder, old, context.address)
            )
        )
        flaw = "an interrupted run left it half-made"
        if marker is not None and not begun:
            flaw = (
                f"its {gone or 'Python'} is gone"
                if marker.get("prefix") == str(path)
                else f"it was made at {marker.get('prefix')} and cannot be moved"
            )
        return LocalObservation(
            pythons=reader.find_pythons(context.spec.python),
            exists=reader.exists(path),
            is_complete=whole,
            drift=find_drift(context, path, reader) if whole else (),
            damage=find_damage(context, path, ledger, reader) if whole else Damage(),
            is_linked=read_json(_stable_path(context) / MARKER_FILE, reader) == marker,
            recorded=recorded,
            recorded_kernel=ledger.state.resource(context.address, "kernel"),
            interrupted=interrupted is not None,
            problem=flaw,
            kernel_text=reader.read(kernel_file, _LIMIT).decode("utf-8", "replace")
            if reader.exists(kernel_file)
            else None,
            kernel_folder=kernel_folder,
            writable=reader.is_writable(context.folder),
            missing_system_packages=reader.missing_system_packages(
                tuple(context.spec.system_packages)
            ),
            conda=program,
            conda_link=conda_name.find_conda_link(
                context, _stable_path(context), recorded_name, program, reader
            ),
            recorded_conda_link=recorded_name,
            is_foreign=reader.exists(path) and not ours,
            running_programs=reader.find_running_programs(path),
            environments_in_use=kept,
            unused_environments=tuple(old for old in earlier if old not in kept),
        )

    def refusals(self, context: TargetContext, observed: LocalObservation) -> tuple[Refusal, ...]:
        """Return what the spec asks for that cannot be done here."""
        of_conda = (
            conda.find_conda_refusals(
                context, observed.conda, _path(context) if observed.is_foreign else None
            )
            if uses_conda(context)
            else ()
        )
        return (
            *_spec_refusals(context.spec, context.target, context.platform),
            *_machine_refusals(context, observed),
            *of_conda,
        )

    def plan(self, context: TargetContext, observed: LocalObservation) -> tuple[Action, ...]:
        """Return the actions: an interpreter if none fits, the environment, its name for conda, the
        kernel.
        """
        name = conda_name.plan_conda_link(
            context, observed.conda_link, observed.recorded_conda_link
        )
        return tuple(
            action
            for action in (
                _python(context, observed),
                _environment(context, observed),
                name,
                _kernel(context, observed),
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

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs run: the environment of the lock on this platform, by its stable
        path too.
        """
        return Interpreter(_path(context) / "bin/python", _path(context), _stable_path(context))

    def get_environment_variables(
        self, context: TargetContext, caller: Mapping[str, str], *, partial: bool = False
    ) -> dict[str, str]:
        """Return env, PROVISION_PATH_* and secrets of the spec; a secret whose variable is not set
        raises Refused, or is left out when `partial`.
        """
        return {
            **declared_variables(context.spec),
            **_secrets(context.spec, caller, partial=partial),
        }


def declared_variables(spec: Spec) -> dict[str, str]:
    """Return the variables that stand in the spec: `env`, and PROVISION_PATH_<NAME> for each path."""  # noqa: E501
    return {
        **spec.env,
        **{f"PROVISION_PATH_{name.upper()}": path for name, path in spec.paths.items()},
    }


def _python(context: TargetContext, observed: LocalObservation) -> Action | None:
    if observed.pythons.selected is not None or uses_conda(context):
        return None
    minor = context.spec.python
    return Action(
        Operation.CREATE,
        context.address,
        "python",
        f"python {minor}, by uv",
        f"no Python {minor} on this machine",
        (InstallPython(minor),),
    )


def _environment(context: TargetContext, observed: LocalObservation) -> Action:
    path = _path(context)
    held = context.lock.packages_in(context.environment)
    torch = next((f", torch {package.version}" for package in held if package.name == "torch"), "")
    built = [package.name for package in held if package.built]
    source = f", {' and '.join(built)} built from source" if built else ""
    brought = context.lock.conda_records_in(context.environment)
    of_conda = (
        f", {len(brought)} of conda by {observed.conda.name}" if brought and observed.conda else ""
    )
    title = (
        f"environment {path.name} (python {context.spec.python}, {len(held)} "
        f"packages{torch}{source}{of_conda})"
    )
    moved = observed.recorded is not None and _recorded_environments(observed.recorded)[:1] != (
        f"envs/{path.name}",
    )
    record = {
        "title": title,
        "kind": "local",
        "manager": "conda" if uses_conda(context) else "uv",
        "paths": [f"envs/{path.name}", f"envs/{_stable_path(context).name}"],
        "digest": context.environment.digest,
    }
    record |= {
        "lock": context.lock.digest,
        "python": context.spec.python,
        **({"earlier": list(observed.environments_in_use)} if observed.environments_in_use else {}),
    }

    notes = tuple(f"{old} stays until its program ends" for old in observed.environments_in_use)

    def act(verb: Operation, because: str, effects: tuple[Effect, ...] = ()) -> Action:
        return Action(verb, context.address, "environment", title, because, effects, record, notes)

    link = ReplaceSymlink(_stable_path(context), path.name)
    removal = tuple(
        RemoveTree(resolve_own_folder(context.folder, old, context.address))
        for old in observed.unused_environments
    )
    if observed.is_complete and not observed.differences:
        if observed.recorded and not moved and observed.is_linked and not removal:
            return act(
                Operation.KEEP,
                f"packages are as locked, files as installed (by {observed.damage.compared_by})",
            )
        if observed.recorded is None or moved:
            because = "a whole environment of this lock is there already"
        else:
            because = (
                "the programs that ran in an earlier one have ended"
                if observed.is_linked
                else "its stable path is missing"
            )
        return act(Operation.CHANGE, because, (link, *removal))
    make = tuple(_creation_effects(context, observed, held))
    # What conda has lost only conda can put back; files are links, so it is soon done. What no
    # package lists no installer takes away.
    if observed.differences and (uses_conda(context) or observed.damage.startup_files):
        return act(Operation.REPLACE, _describe_changes(observed), (*make, link, *removal))
    if observed.differences:
        again = tuple(name for name, _ in observed.damage.packages)
        put_right = InstallPackages(
            path,
            context.spec.python,
            tuple(_pin(package) for package in held),
            _indexes(context, held),
            reinstall=again,
        )
        return act(Operation.CHANGE, _describe_changes(observed), (put_right, link, *removal))
    if moved:
        return act(
            Operation.REPLACE,
            "the lock holds other packages than it was made from",
            (*make, link, *removal),
        )
    because = observed.problem if observed.exists or observed.interrupted else "there is none yet"
    return act(
        Operation.REPLACE if observed.recorded and observed.exists else Operation.CREATE,
        because,
        (*make, link, *removal),
    )


def _recorded_environments(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the recorded paths of environments: the current one, and those of earlier locks that
    were in use.
    """
    return (*(record or {}).get("paths", ())[:1], *(record or {}).get("earlier", ()))


def _describe_changes(observed: LocalObservation) -> str:
    return f"it was changed since it was made: {join_limited(observed.differences)}"


def _creation_effects(
    context: TargetContext, observed: LocalObservation, held: tuple[LockedPackage, ...]
) -> Iterator[Effect]:
    path = _path(context)
    if observed.exists:
        yield RemoveTree(path)
    yield MakeFolder(path.parent, 0o700)
    if uses_conda(context) and observed.conda is not None:
        yield conda.build_prefix_effect(context, observed.conda)._replace(path=path)
    else:
        yield CreateVenv(path, context.spec.python)
    yield InstallPackages(
        path,
        context.spec.python,
        tuple(_pin(package) for package in held),
        _indexes(context, held),
        shared=uses_conda(context),
    )
    # Last, so that an environment with this file is whole.
    yield WriteFile(
        path / MARKER_FILE, json.dumps(_marker(context), indent=1, sort_keys=True) + "\n"
    )


def _pin(package: LockedPackage) -> Pin:
    index = None if package.index == "pypi" else package.index
    return Pin(
        package.name,
        package.version,
        index,
        tuple(file.sha256 for file in package.files),
        package.built,
    )


def _indexes(context: TargetContext, held: tuple[LockedPackage, ...]) -> tuple[Index, ...]:
    used = {
        package.index: tuple(f"{p.name}=={p.version}" for p in held if p.index == package.index)
        for package in held
        if package.index != "pypi"
    }
    flavours = {f"pytorch-{context.environment.flavour}": context.environment.flavour}
    return tuple(
        Index(name, context.lock.indexes[name], flavours.get(name), pins, (context.platform,))
        for name, pins in sorted(used.items())
    )


def _kernel(context: TargetContext, observed: LocalObservation) -> Action | None:
    target = context.spec.targets[context.target]
    wanted = isinstance(target, LocalTarget) and target.kernel
    name = build_kernel_name(context.address, context.folder)
    if not wanted:
        if observed.recorded_kernel is None:
            return None
        gone = plan_kernel_removal(observed.recorded_kernel, context.address)
        return Action(
            Operation.DESTROY,
            context.address,
            "kernel",
            f"Jupyter kernel {name}",
            "the spec no longer asks for it",
            gone,
        )
    text = _kernel_text(context)
    record = {
        "title": f"Jupyter kernel {name}",
        "name": name,
        "outside": [str(observed.kernel_folder)],
    }
    if (
        observed.kernel_text == text
        and observed.recorded_kernel is not None
        and observed.recorded_kernel.get("outside") == record["outside"]
    ):
        return Action(
            Operation.KEEP,
            context.address,
            "kernel",
            f"Jupyter kernel {name}",
            "it is as declared",
            (),
            record,
        )
    verb = Operation.CREATE if observed.kernel_text is None else Operation.CHANGE
    elsewhere = tuple(
        effect
        for effect in plan_kernel_removal(observed.recorded_kernel or {}, context.address)
        if effect.path != observed.kernel_folder
    )
    effects: tuple[Effect, ...] = (
        *elsewhere,
        MakeFolder(observed.kernel_folder),
        WriteFile(observed.kernel_folder / "kernel.json", text),
    )
    return Action(
        verb,
        context.address,
        "kernel",
        f"Jupyter kernel {name}",
        "the spec says kernel: true",
        effects,
        record,
    )


def _kernel_text(context: TargetContext) -> str:
    # ${NAME} is filled in by Jupyter from its own environment, so no secret is written down; a $ of
    # the author's is doubled to stay one.
    secrets = {
        name: f"${{{reference.env}}}"
        for name, reference in context.spec.secrets.items()
        if reference.env
    }
    declared = {
        name: value.replace("$", "$$") for name, value in declared_variables(context.spec).items()
    }
    prefix = _stable_path(context)
    document = {
        "argv": build_kernel_argv(str(prefix / "bin/python")),
        "display_name": f"{context.spec.name} ({context.target})",
        "language": "python",
        "env": {
            **declared,
            **secrets,
            "CONDA_PREFIX" if uses_conda(context) else "VIRTUAL_ENV": str(prefix),
            "PATH": f"{prefix / 'bin'}:${{PATH}}",
        },
        "metadata": {"provision": {"environment_digest": context.environment.digest}},
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
    declared = spec.targets[target]
    if isinstance(declared, LocalTarget) and declared.kernel and spec.package("ipykernel") is None:
        yield Refusal(
            ("targets", target, "kernel"),
            "a Jupyter kernel needs ipykernel in the environment",
            "add ipykernel to `packages`",
        )
    yield from find_common_refusals(spec)
    if spec.cuda_toolkit is not None:
        yield Refusal(
            ("cuda_toolkit",),
            f"installing a CUDA toolkit on a local machine: {NOT_SUPPORTED_YET}",
            "install nvcc yourself and remove the field",
        )
    if spec.gpu.type == "mps" and not platform.startswith("macos"):
        yield Refusal(
            ("gpu",),
            f"mps is Apple silicon, and this machine is {platform}",
            "write gpu: none, or name the card",
        )
    for name, reference in spec.secrets.items():
        if reference.env is None:
            yield Refusal(
                ("secrets", name),
                "a local environment takes secrets from the caller's variables only",
                f"write {{env: {name}}}",
            )


def _machine_refusals(context: TargetContext, observed: LocalObservation) -> Iterator[Refusal]:
    known = observed.pythons
    if known.selected is None and not known.is_downloadable and not uses_conda(context):
        found = (
            ", ".join(f"{python.version} ({python.path})" for python in known.installed) or "none"
        )
        why = f"no Python {known.requested} on this machine, and {known.why_not}; found: {found}"
        yield Refusal(("python",), why, f"install Python {known.requested}, or change `python`")
    if os.pathsep in str(context.folder):
        yield Refusal(
            (),
            f"the folder {context.folder} has a {os.pathsep!r} in its name, which PATH cannot hold",
            "put the spec in another folder",
        )
    if not context.spec.gpu.is_none and "torch" not in {
        *context.lock.versions(context.environment),
        *conda.list_python_names(context),
    }:
        yield Refusal(
            ("gpu",),
            f"gpu: {context.spec.gpu} cannot be shown to compute without torch",
            "add torch to `packages`, or write gpu: none",
        )
    if (
        observed.running_programs
        and observed.exists
        and (observed.differences or not observed.is_complete)
    ):
        what = _describe_changes(observed) if observed.is_complete else observed.problem
        why = (
            f"the environment has to be repaired ({what}) and is in use: "
            f"{', '.join(observed.running_programs)}"
        )
        yield Refusal(
            (),
            why,
            "end that program, or remove the environment under it: "
            f"{context.command('destroy')} --force",
        )
    if not observed.writable:
        yield Refusal(
            (),
            f"the folder {context.folder} cannot be written to",
            "put the spec in a folder that you may write to",
        )
    if observed.missing_system_packages is None and context.spec.system_packages:
        yield Refusal(
            ("system_packages",),
            "whether they are installed cannot be told here (no dpkg)",
            "remove the field for this machine and install them by its own means",
        )
    elif observed.missing_system_packages:
        names = " ".join(observed.missing_system_packages)
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


def _marker(context: TargetContext) -> dict[str, Any]:
    return {
        "schema": _MARKER_SCHEMA,
        "spec": context.stem,
        "target": context.target,
        "digest": context.environment.digest,
        "prefix": str(_path(context)),
    }


def _path(context: TargetContext) -> Path:
    digest = context.environment.digest.removeprefix("sha256:")[:12]
    return context.folder / "envs" / f"{context.stem}.{context.target}-{digest}"


def _stable_path(context: TargetContext) -> Path:
    return context.folder / "envs" / f"{context.stem}.{context.target}"
