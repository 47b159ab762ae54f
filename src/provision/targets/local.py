"""A local environment made by uv, or by conda and uv: beside the spec, named by what it holds, whole or not there."""

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
    Interpreters,
    MakeFolder,
    Pin,
    PointLink,
    Reader,
    RemoveTree,
    WriteFile,
)
from provision.errors import Refused
from provision.lock import Package
from provision.plan import Action, Verb
from provision.spec import LocalTarget, Spec
from provision.state import Ledger, own_name
from provision.targets import by_conda as conda
from provision.targets import conda_name
from provision.targets.by_conda import by_conda
from provision.targets.conda_name import Naming
from provision.targets.environment_drift import find_damage, find_drift, name_damage, named, read_json
from provision.targets.kernel_start import kernel_argv
from provision.targets.recorded_paths import kernel_name, own_folder, own_kernels
from provision.targets.target import Place, Refusal, Seat
from provision.targets.unmade import LATER, unmade

MARKER = "provision.json"
_MARKER_SCHEMA = "provision.environment/1"
_LIMIT = 2**20


@dataclass(frozen=True, slots=True)
class Have:
    """What was found: Pythons, the environment on disk and in the state, what differs in it (packages, and the files of packages), the kernel's text.

    `users` are the programs that run in it. Of environments of earlier locks, `kept` are the recorded paths of those in use, `ended` of those that are not.
    """

    interpreters: Interpreters
    exists: bool
    whole: bool
    drift: tuple[str, ...]
    damage: Damage
    linked: bool
    recorded: Mapping[str, Any] | None
    recorded_kernel: Mapping[str, Any] | None
    interrupted: bool
    flaw: str
    kernel_text: str | None
    kernel_folder: Path
    writable: bool
    missing_system_packages: tuple[str, ...] | None
    conda: CondaProgram | None = None
    naming: Naming | None = None
    recorded_name: Mapping[str, Any] | None = None
    foreign: bool = False
    users: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[str, ...]:
        """What differs in it from what was installed, in words: packages, then files."""
        return (*self.drift, *name_damage(self.damage))


class Local:
    """Environments on this machine (see provision.targets.Target)."""

    platform: str | None = None

    def look(self, place: Place, ledger: Ledger, reader: Reader) -> Have:
        """Return what this machine has of the place."""
        path = _path(place)
        marker = read_json(path / MARKER, reader)
        interrupted = ledger.cut_short(place.address)
        needed = {"Python": "bin/python", **({} if by_conda(place) else {"pyvenv.cfg": "pyvenv.cfg"})}
        gone = next((name for name, file in needed.items() if not reader.exists(path / file)), "")
        begun = interrupted is not None and f"envs/{path.name}" in interrupted.paths
        whole = marker == _marker(place) and not gone and not begun
        kernel_folder = _kernels_folder(reader.environment()) / kernel_name(place.address, place.folder)
        kernel_file = kernel_folder / "kernel.json"
        recorded = ledger.state.resource(place.address, "environment")
        recorded_name = ledger.state.resource(place.address, conda_name.PART)
        program = conda.look_for(place, reader)
        ours = marker is not None or begun or f"envs/{path.name}" in (recorded or {}).get("paths", ())
        earlier = tuple(old for old in _recorded(recorded) if old != f"envs/{path.name}")
        kept = tuple(old for old in earlier if reader.users(own_folder(place.folder, old, place.address)))
        flaw = "an interrupted run left it half-made"
        if marker is not None and not begun:
            flaw = f"its {gone or 'Python'} is gone" if marker.get("prefix") == str(path) else f"it was made at {marker.get('prefix')} and cannot be moved"
        return Have(
            interpreters=reader.interpreters(place.spec.python),
            exists=reader.exists(path),
            whole=whole,
            drift=find_drift(place, path, reader) if whole else (),
            damage=find_damage(place, path, ledger, reader) if whole else Damage(),
            linked=read_json(_stable(place) / MARKER, reader) == marker,
            recorded=recorded,
            recorded_kernel=ledger.state.resource(place.address, "kernel"),
            interrupted=interrupted is not None,
            flaw=flaw,
            kernel_text=reader.read(kernel_file, _LIMIT).decode("utf-8", "replace") if reader.exists(kernel_file) else None,
            kernel_folder=kernel_folder,
            writable=reader.writable(place.folder),
            missing_system_packages=reader.missing_system_packages(tuple(place.spec.system_packages)),
            conda=program,
            naming=conda_name.look(place, _stable(place), recorded_name, program, reader),
            recorded_name=recorded_name,
            foreign=reader.exists(path) and not ours,
            users=reader.users(path),
            kept=kept,
            ended=tuple(old for old in earlier if old not in kept),
        )

    def refusals(self, place: Place, have: Have) -> tuple[Refusal, ...]:
        """Return what the spec asks for that cannot be done here."""
        of_conda = conda.refusals(place, have.conda, _path(place) if have.foreign else None) if by_conda(place) else ()
        return (*_unavailable(place.spec, place.target, place.platform), *_out_of_place(place, have), *of_conda)

    def plan(self, place: Place, have: Have) -> tuple[Action, ...]:
        """Return the actions: an interpreter if none fits, the environment, its name for conda, the kernel."""
        name = conda_name.plan(place, have.naming, have.recorded_name)
        return tuple(action for action in (_python(place, have), _environment(place, have), name, _kernel(place, have)) if action)

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that remove the environments, links and kernel of an address, and nothing else."""
        actions = []
        parts = ledger.state.parts(address)
        interrupted = ledger.cut_short(address)
        if interrupted is not None and interrupted.part == conda_name.PART:
            parts.setdefault(conda_name.PART, interrupted.details)
        for part in sorted(parts, key=lambda part: part == conda_name.PART):  # the name last, when nothing is there that it leads to
            record = parts[part]
            earlier = tuple(record.get("earlier", ()))
            recorded = (*record.get("paths", ()), *earlier)
            if part == "environment" and "verification" not in parts:  # interrupted before its report was recorded
                recorded = (*recorded, f"reports/{own_name(address)}")
            effects: tuple[Effect, ...] = tuple(RemoveTree(own_folder(folder, path, address)) for path in recorded)
            effects = (*effects, *conda_name.removal(record)) if part == conda_name.PART else effects
            outside = own_kernels(record, address)
            title = record.get("title", part) + "".join(f", and {Path(path).name} of an earlier lock" for path in earlier)
            actions.append(Action(Verb.DESTROY, address, part, title, "destroy was asked for", (*outside, *effects)))
        if interrupted is not None and interrupted.part != conda_name.PART:
            effects = tuple(RemoveTree(own_folder(folder, path, address)) for path in interrupted.paths)
            actions.insert(0, Action(Verb.DESTROY, address, interrupted.part, "half-made environment", "an interrupted run left it", effects))
        return tuple(actions)

    def seat(self, place: Place) -> Seat:
        """Return where programs run: the environment of the lock on this platform, by its stable path too."""
        return Seat(_path(place) / "bin/python", _path(place), _stable(place))

    def variables(self, place: Place, caller: Mapping[str, str], *, partial: bool = False) -> dict[str, str]:
        """Return env, PROVISION_PATH_* and secrets of the spec; a secret whose variable is not set raises Refused, or is left out when `partial`."""
        return {**declared_variables(place.spec), **_secrets(place.spec, caller, partial=partial)}


def declared_variables(spec: Spec) -> dict[str, str]:
    """Return the variables that stand in the spec: `env`, and PROVISION_PATH_<NAME> for each path."""
    return {**spec.env, **{f"PROVISION_PATH_{name.upper()}": path for name, path in spec.paths.items()}}


def _python(place: Place, have: Have) -> Action | None:
    if have.interpreters.chosen is not None or by_conda(place):
        return None
    minor = place.spec.python
    return Action(Verb.CREATE, place.address, "python", f"python {minor}, by uv", f"no Python {minor} on this machine", (InstallPython(minor),))


def _environment(place: Place, have: Have) -> Action:
    path = _path(place)
    held = place.lock.held_by(place.environment)
    torch = next((f", torch {package.version}" for package in held if package.name == "torch"), "")
    built = [package.name for package in held if package.built]
    source = f", {' and '.join(built)} built from source" if built else ""
    brought = place.lock.conda_of(place.environment)
    of_conda = f", {len(brought)} of conda by {have.conda.name}" if brought and have.conda else ""
    title = f"environment {path.name} (python {place.spec.python}, {len(held)} packages{torch}{source}{of_conda})"
    moved = have.recorded is not None and _recorded(have.recorded)[:1] != (f"envs/{path.name}",)
    record = {
        "title": title,
        "kind": "local",
        "manager": "conda" if by_conda(place) else "uv",
        "paths": [f"envs/{path.name}", f"envs/{_stable(place).name}"],
        "digest": place.environment.digest,
    }
    record |= {"lock": place.lock.digest, "python": place.spec.python, **({"earlier": list(have.kept)} if have.kept else {})}

    notes = tuple(f"{old} stays until its program ends" for old in have.kept)

    def act(verb: Verb, because: str, effects: tuple[Effect, ...] = ()) -> Action:
        return Action(verb, place.address, "environment", title, because, effects, record, notes)

    link = PointLink(_stable(place), path.name)
    removal = tuple(RemoveTree(own_folder(place.folder, old, place.address)) for old in have.ended)
    if have.whole and not have.differences:
        if have.recorded and not moved and have.linked and not removal:
            return act(Verb.KEEP, f"packages are as locked, files as installed (by {have.damage.by})")
        if have.recorded is None or moved:
            because = "a whole environment of this lock is there already"
        else:
            because = "the programs that ran in an earlier one have ended" if have.linked else "its stable path is missing"
        return act(Verb.CHANGE, because, (link, *removal))
    make = tuple(_making(place, have, held))
    # What conda has lost only conda can put back; files are links, so it is soon done. What no package lists no installer takes away.
    if have.differences and (by_conda(place) or have.damage.started):
        return act(Verb.REPLACE, _changed(have), (*make, link, *removal))
    if have.differences:
        again = tuple(name for name, _ in have.damage.packages)
        put_right = InstallPackages(path, place.spec.python, tuple(_pin(package) for package in held), _indexes(place, held), again=again)
        return act(Verb.CHANGE, _changed(have), (put_right, link, *removal))
    if moved:
        return act(Verb.REPLACE, "the lock holds other packages than it was made from", (*make, link, *removal))
    because = have.flaw if have.exists or have.interrupted else "there is none yet"
    return act(Verb.REPLACE if have.recorded and have.exists else Verb.CREATE, because, (*make, link, *removal))


def _recorded(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the recorded paths of environments: the current one, and those of earlier locks that were in use."""
    return (*(record or {}).get("paths", ())[:1], *(record or {}).get("earlier", ()))


def _changed(have: Have) -> str:
    return f"it was changed since it was made: {named(have.differences)}"


def _making(place: Place, have: Have, held: tuple[Package, ...]) -> Iterator[Effect]:
    path = _path(place)
    if have.exists:
        yield RemoveTree(path)
    yield MakeFolder(path.parent, 0o700)
    if by_conda(place) and have.conda is not None:
        yield conda.prefix(place, have.conda)._replace(path=path)
    else:
        yield CreateVenv(path, place.spec.python)
    yield InstallPackages(path, place.spec.python, tuple(_pin(package) for package in held), _indexes(place, held), shared=by_conda(place))
    # Last, so that an environment with this file is whole.
    yield WriteFile(path / MARKER, json.dumps(_marker(place), indent=1, sort_keys=True) + "\n")


def _pin(package: Package) -> Pin:
    index = None if package.index == "pypi" else package.index
    return Pin(package.name, package.version, index, tuple(file.sha256 for file in package.files), package.built)


def _indexes(place: Place, held: tuple[Package, ...]) -> tuple[Index, ...]:
    used = {package.index: tuple(f"{p.name}=={p.version}" for p in held if p.index == package.index) for package in held if package.index != "pypi"}
    flavours = {f"pytorch-{place.environment.flavour}": place.environment.flavour}
    return tuple(Index(name, place.lock.indexes[name], flavours.get(name), pins, (place.platform,)) for name, pins in sorted(used.items()))


def _kernel(place: Place, have: Have) -> Action | None:
    target = place.spec.targets[place.target]
    wanted = isinstance(target, LocalTarget) and target.kernel
    name = kernel_name(place.address, place.folder)
    if not wanted:
        if have.recorded_kernel is None:
            return None
        gone = own_kernels(have.recorded_kernel, place.address)
        return Action(Verb.DESTROY, place.address, "kernel", f"Jupyter kernel {name}", "the spec no longer asks for it", gone)
    text = _kernel_text(place)
    record = {"title": f"Jupyter kernel {name}", "name": name, "outside": [str(have.kernel_folder)]}
    if have.kernel_text == text and have.recorded_kernel is not None and have.recorded_kernel.get("outside") == record["outside"]:
        return Action(Verb.KEEP, place.address, "kernel", f"Jupyter kernel {name}", "it is as declared", (), record)
    verb = Verb.CREATE if have.kernel_text is None else Verb.CHANGE
    elsewhere = tuple(effect for effect in own_kernels(have.recorded_kernel or {}, place.address) if effect.path != have.kernel_folder)
    effects: tuple[Effect, ...] = (*elsewhere, MakeFolder(have.kernel_folder), WriteFile(have.kernel_folder / "kernel.json", text))
    return Action(verb, place.address, "kernel", f"Jupyter kernel {name}", "the spec says kernel: true", effects, record)


def _kernel_text(place: Place) -> str:
    # ${NAME} is filled in by Jupyter from its own environment, so no secret is written down; a $ of the author's is doubled to stay one.
    secrets = {name: f"${{{reference.env}}}" for name, reference in place.spec.secrets.items() if reference.env}
    declared = {name: value.replace("$", "$$") for name, value in declared_variables(place.spec).items()}
    prefix = _stable(place)
    document = {
        "argv": kernel_argv(str(prefix / "bin/python")),
        "display_name": f"{place.spec.name} ({place.target})",
        "language": "python",
        "env": {**declared, **secrets, "CONDA_PREFIX" if by_conda(place) else "VIRTUAL_ENV": str(prefix), "PATH": f"{prefix / 'bin'}:${{PATH}}"},
        "metadata": {"provision": {"environment_digest": place.environment.digest}},
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _kernels_folder(environment: Mapping[str, str]) -> Path:
    """Return Jupyter's user folder of kernels. Source: jupyter_core.paths.jupyter_data_dir."""
    if data := environment.get("JUPYTER_DATA_DIR"):
        return Path(data) / "kernels"
    home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is no home
    if sys.platform == "darwin":
        return home / "Library/Jupyter/kernels"
    return Path(environment.get("XDG_DATA_HOME") or home / ".local/share") / "jupyter/kernels"


def _unavailable(spec: Spec, target: str, platform: str) -> Iterator[Refusal]:
    place = spec.targets[target]
    if isinstance(place, LocalTarget) and place.kernel and spec.package("ipykernel") is None:
        yield Refusal(("targets", target, "kernel"), "a Jupyter kernel needs ipykernel in the environment", "add ipykernel to `packages`")
    yield from unmade(spec)
    if spec.cuda_toolkit is not None:
        yield Refusal(("cuda_toolkit",), f"installing a CUDA toolkit on a local machine: {LATER}", "install nvcc yourself and remove the field")
    if spec.gpu.type == "mps" and not platform.startswith("macos"):
        yield Refusal(("gpu",), f"mps is Apple silicon, and this machine is {platform}", "write gpu: none, or name the card")
    for name, reference in spec.secrets.items():
        if reference.env is None:
            yield Refusal(("secrets", name), "a local environment takes secrets from the caller's variables only", f"write {{env: {name}}}")


def _out_of_place(place: Place, have: Have) -> Iterator[Refusal]:
    known = have.interpreters
    if known.chosen is None and not known.fetchable and not by_conda(place):
        found = ", ".join(f"{python.version} ({python.path})" for python in known.found) or "none"
        why = f"no Python {known.wanted} on this machine, and {known.why_not}; found: {found}"
        yield Refusal(("python",), why, f"install Python {known.wanted}, or change `python`")
    if os.pathsep in str(place.folder):
        yield Refusal((), f"the folder {place.folder} has a {os.pathsep!r} in its name, which PATH cannot hold", "put the spec in another folder")
    if not place.spec.gpu.none and "torch" not in {*place.lock.versions(place.environment), *conda.python_names(place)}:
        yield Refusal(("gpu",), f"gpu: {place.spec.gpu} cannot be shown to compute without torch", "add torch to `packages`, or write gpu: none")
    if have.users and have.exists and (have.differences or not have.whole):
        what = _changed(have) if have.whole else have.flaw
        why = f"the environment has to be repaired ({what}) and is in use: {', '.join(have.users)}"
        yield Refusal((), why, f"end that program, or remove the environment under it: {place.command('destroy')} --force")
    if not have.writable:
        yield Refusal((), f"the folder {place.folder} cannot be written to", "put the spec in a folder that you may write to")
    if have.missing_system_packages is None and place.spec.system_packages:
        yield Refusal(
            ("system_packages",),
            "whether they are installed cannot be told here (no dpkg)",
            "remove the field for this machine and install them by its own means",
        )
    elif have.missing_system_packages:
        names = " ".join(have.missing_system_packages)
        yield Refusal(("system_packages",), f"not installed on this machine: {names}", f"sudo apt-get install {names}")


def _secrets(spec: Spec, caller: Mapping[str, str], *, partial: bool) -> dict[str, str]:
    values = {}
    for name, reference in spec.secrets.items():
        if not reference.env or not caller.get(reference.env):
            if partial:
                continue
            raise Refused(
                f"the secret {name} has no value", why=f"the variable {reference.env} is not set or empty", hint=f"export {reference.env}=... and run again"
            )
        values[name] = caller[reference.env]
    return values


def _marker(place: Place) -> dict[str, Any]:
    return {"schema": _MARKER_SCHEMA, "spec": place.stem, "target": place.target, "digest": place.environment.digest, "prefix": str(_path(place))}


def _path(place: Place) -> Path:
    return place.folder / "envs" / f"{place.stem}.{place.target}-{place.environment.digest.removeprefix('sha256:')[:12]}"


def _stable(place: Place) -> Path:
    return place.folder / "envs" / f"{place.stem}.{place.target}"
