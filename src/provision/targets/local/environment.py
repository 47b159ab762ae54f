"""Plans the Python and the environment of a local target."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from provision.agent.install.document import PackageToInstall
from provision.effects.local import (
    CreateVenv,
    InstallPackages,
    InstallPython,
    MakeFolder,
    RemoveTree,
    ReplaceSymlink,
    WriteFile,
)
from provision.effects.packages import NamedIndex
from provision.effects.system import Effect
from provision.lock import LockedPackage
from provision.plan import Action, Intent, Operation
from provision.targets.context import TargetContext
from provision.targets.local.conda_prefix import build_prefix_effect, uses_conda
from provision.targets.local.environment_drift import join_limited
from provision.targets.local.observation import LocalObservation
from provision.targets.local.paths import (
    MARKER_FILE,
    build_marker,
    environment_path,
    recorded_environments,
    stable_path,
)
from provision.targets.recorded_paths import resolve_own_folder

ENVIRONMENT_PART = "environment"


def plan_python(context: TargetContext, observed: LocalObservation) -> Action | None:
    """Return the installation of an interpreter, if none on this machine fits."""
    if observed.pythons.selected is not None or uses_conda(context):
        return None
    minor = context.spec.python
    reason = f"no Python {minor} on this machine"
    title = f"python {minor}, by uv"
    install = InstallPython(minor)
    return Action(Operation.CREATE, context.address, "python", title, reason, (install,))


def plan_environment(context: TargetContext, observed: LocalObservation) -> Action:
    """Return what is done with the environment: kept, created, repaired, linked or replaced."""
    change = _choose_change(context, observed)
    path, link = environment_path(context), stable_path(context)
    effects = change.effects
    if change.operation is not Operation.KEEP:
        removals = (
            RemoveTree(resolve_own_folder(context.folder, earlier, context.address))
            for earlier in observed.unused_environments
        )
        effects = (*effects, ReplaceSymlink(link, path.name), *removals)
    return Action(
        change.operation,
        context.address,
        ENVIRONMENT_PART,
        _describe_environment(context, observed),
        change.reason,
        effects,
        _build_record(context, observed),
        tuple(f"{old} stays until its program ends" for old in observed.environments_in_use),
        _build_intent(context, change),
    )


def describe_changes(observed: LocalObservation) -> str:
    """Return what was changed in an environment since it was made."""
    return f"it was changed since it was made: {join_limited(observed.differences)}"


@dataclass(frozen=True, slots=True)
class _Change:
    operation: Operation
    reason: str
    effects: tuple[Effect, ...] = ()


def _choose_change(context: TargetContext, observed: LocalObservation) -> _Change:
    recorded = observed.recorded
    current = (f"envs/{environment_path(context).name}",)
    moved = recorded is not None and recorded_environments(recorded)[:1] != current
    if observed.is_complete and not observed.differences:
        return _choose_link_change(observed, moved=moved)
    # Only conda can restore what conda has lost; files are links, so that is quick. No installer
    # removes a file that no package lists.
    if observed.differences and not uses_conda(context) and not observed.damage.startup_files:
        damaged = tuple(name for name, _ in observed.damage.packages)
        repair = _install_effect(context, reinstall=damaged)
        return _Change(Operation.CHANGE, describe_changes(observed), (repair,))
    creation = tuple(_creation_effects(context, observed))
    if observed.differences:
        return _Change(Operation.REPLACE, describe_changes(observed), creation)
    if moved:
        reason = "the lock holds other packages than it was made from"
        return _Change(Operation.REPLACE, reason, creation)
    reason = "there is none yet"
    if observed.exists or observed.interrupted:
        reason = observed.problem
    operation = Operation.REPLACE if recorded and observed.exists else Operation.CREATE
    return _Change(operation, reason, creation)


def _choose_link_change(observed: LocalObservation, *, moved: bool) -> _Change:
    """Return what is left to do with a complete environment: record it, link it, remove others."""
    if observed.recorded is None or moved:
        return _Change(Operation.CHANGE, "a whole environment of this lock is there already")
    if not observed.is_linked:
        return _Change(Operation.CHANGE, "its stable path is missing")
    if observed.unused_environments:
        reason = "the programs that ran in an earlier one have ended"
        return _Change(Operation.CHANGE, reason)
    compared_by = observed.damage.compared_by
    reason = f"packages are as locked, files as installed (by {compared_by})"
    return _Change(Operation.KEEP, reason)


def _describe_environment(context: TargetContext, observed: LocalObservation) -> str:
    packages = context.lock.packages_in(context.environment)
    contents = [f"python {context.spec.python}", f"{len(packages)} packages"]
    contents += [f"torch {package.version}" for package in packages if package.name == "torch"]
    built = [package.name for package in packages if package.built]
    if built:
        contents.append(f"{' and '.join(built)} built from source")
    conda_records = context.lock.conda_records_in(context.environment)
    if conda_records and observed.conda:
        contents.append(f"{len(conda_records)} of conda by {observed.conda.name}")
    return f"environment {environment_path(context).name} ({', '.join(contents)})"


def _build_record(context: TargetContext, observed: LocalObservation) -> dict[str, Any]:
    record: dict[str, Any] = {
        "title": _describe_environment(context, observed),
        "kind": "local",
        "manager": "conda" if uses_conda(context) else "uv",
        "paths": [f"envs/{environment_path(context).name}", f"envs/{stable_path(context).name}"],
        "digest": context.environment.digest,
        "lock": context.lock.digest,
        "python": context.spec.python,
    }
    if observed.environments_in_use:
        record["earlier"] = list(observed.environments_in_use)
    return record


def _build_intent(context: TargetContext, change: _Change) -> Intent | None:
    """Return the journal entry: the environment if it is made or repaired, and its stable path."""
    if change.operation is Operation.KEEP:
        return None
    paths = [stable_path(context)]
    if change.effects:
        paths.insert(0, environment_path(context))
    relative = tuple(path.relative_to(context.folder).as_posix() for path in paths)
    return Intent(context.address, ENVIRONMENT_PART, str(change.operation), relative)


def _creation_effects(context: TargetContext, observed: LocalObservation) -> Iterator[Effect]:
    path = environment_path(context)
    if observed.exists:
        yield RemoveTree(path)
    yield MakeFolder(path.parent, 0o700)
    if uses_conda(context) and observed.conda is not None:
        yield build_prefix_effect(context, observed.conda)._replace(path=path)
    else:
        yield CreateVenv(path, context.spec.python)
    yield _install_effect(context, shared=uses_conda(context))
    # Last, so that an environment with this file is complete.
    marker = json.dumps(build_marker(context), indent=1, sort_keys=True)
    yield WriteFile(path / MARKER_FILE, marker + "\n")


def _install_effect(
    context: TargetContext, *, reinstall: tuple[str, ...] = (), shared: bool = False
) -> InstallPackages:
    packages = context.lock.packages_in(context.environment)
    return InstallPackages(
        environment_path(context),
        context.spec.python,
        tuple(_pin(package) for package in packages),
        _indexes(context, packages),
        reinstall=reinstall,
        shared=shared,
    )


def _pin(package: LockedPackage) -> PackageToInstall:
    index = None if package.index == "pypi" else package.index
    digests = tuple(file.sha256 for file in package.files)
    return PackageToInstall(package.name, package.version, index, digests, package.built)


def _indexes(context: TargetContext, packages: tuple[LockedPackage, ...]) -> tuple[NamedIndex, ...]:
    flavour = context.environment.flavour
    flavours = {f"pytorch-{flavour}": flavour}
    names = sorted({package.index for package in packages} - {"pypi"})
    return tuple(
        NamedIndex(
            name,
            context.lock.indexes[name],
            flavours.get(name),
            tuple(f"{p.name}=={p.version}" for p in packages if p.index == name),
            (context.platform,),
        )
        for name in names
    )
