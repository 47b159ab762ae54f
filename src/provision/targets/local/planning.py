"""Plans a local target: its Python, its environment and its Jupyter kernel."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.agent.install.document import PackageToInstall
from provision.effects.local import (
    CreateVenv,
    InstallPackages,
    InstallPython,
    MakeFolder,
    RemoveSymlink,
    RemoveTree,
    ReplaceSymlink,
    WriteFile,
)
from provision.effects.packages import NamedIndex
from provision.effects.system import Effect
from provision.errors import Refused
from provision.plan import Action, Intent, Operation
from provision.spec import LocalTarget
from provision.spelling import pluralize
from provision.state import (
    FOREIGN_RECORD_HINT,
    build_kernel_name,
    build_kernel_prefix,
    resolve_own_folder,
    to_folder_name,
)
from provision.targets.context import TargetContext, declared_variables
from provision.targets.local.conda import build_prefix_effect, uses_conda
from provision.targets.local.observation import LocalObservation, describe_changes
from provision.targets.local.records import (
    MARKER_FILE,
    CondaLinkRecord,
    EnvironmentRecord,
    KernelRecord,
    build_marker,
    environment_path,
    stable_path,
)
from provision.targets.stored_verdict import name_files

_NEW = (Operation.CREATE, Operation.REPLACE)

# Starts the kernel by the path that survives the next lock, and notes it as a user of the
# environment, for provision.adapters.process. It runs in the environment: nothing but the
# standard library.
_KERNEL_LAUNCHER = """\
import os, sys
real = os.path.realpath(sys.prefix)
try:
    import fcntl
    notes = os.path.join(os.path.dirname(os.path.dirname(real)), "use", os.path.basename(real))
    os.makedirs(notes, mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
    held = os.open(os.path.join(notes, str(os.getpid())), flags, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(held, b"process %d: a Jupyter kernel" % os.getpid())
    os.set_inheritable(held, True)
except (ImportError, OSError):
    pass
python = os.path.join(real, "bin", "python")
os.execv(python, [python, "-m", "ipykernel_launcher", *sys.argv[1:]])
"""


def plan_python(context: TargetContext, observed: LocalObservation) -> Action | None:
    """Return the installation of an interpreter, if none on this machine fits."""
    if observed.pythons.selected is not None or uses_conda(context):
        return None
    minor = context.spec.python
    reason = f"there is no Python {minor} on this machine"
    title = f"python {minor}, by uv"
    install = InstallPython(minor)
    return Action(Operation.CREATE, context.address, "python", title, reason, (install,))


def plan_environment(context: TargetContext, observed: LocalObservation) -> Action:
    """Return what is done with the environment: kept, created, repaired, linked or replaced."""
    change, record = _choose_change(context, observed), _build_record(context, observed)
    path, link = environment_path(context), stable_path(context)
    effects = change.effects
    if change.operation is not Operation.KEEP:
        removals = (
            RemoveTree(resolve_own_folder(context.folder, earlier, context.address), True)
            for earlier in observed.unused_environments
        )
        effects = (*effects, ReplaceSymlink(link, path.name), *removals)
    return Action(
        change.operation,
        context.address,
        EnvironmentRecord.part,
        record.title,
        change.reason,
        effects,
        record.to_json(),
        (
            *(observed.preflight if change.operation in _NEW else ()),
            *(
                f"{old} is kept until the program running in it ends"
                for old in observed.environments_in_use
            ),
        ),
        _build_intent(context, change),
    )


@dataclass(frozen=True, slots=True)
class _Change:
    operation: Operation
    reason: str
    effects: tuple[Effect, ...] = ()


def _choose_change(context: TargetContext, observed: LocalObservation) -> _Change:
    recorded = observed.recorded
    current = (f"envs/{environment_path(context).name}",)
    moved = recorded is not None and recorded.environments[:1] != current
    if observed.is_complete and not observed.differences and not observed.edited:
        return _choose_link_change(observed, moved=moved)
    # Only conda can restore what conda has lost; files are links, so that is quick. No installer
    # removes a file that no package lists.
    if observed.differences and not uses_conda(context) and not observed.damage.startup_files:
        damaged = tuple(name for name, _ in observed.damage.packages)
        repair = _install_effect(context, reinstall=damaged)
        return _Change(Operation.CHANGE, describe_changes(observed), (repair,))
    if observed.edited and not observed.differences and not uses_conda(context):
        effects = (
            _install_effect(context, reinstall=observed.edited),
            _marker_effect(context),
        )
        return _Change(Operation.CHANGE, _describe_edit(observed), effects)
    creation = tuple(_creation_effects(context, observed))
    if observed.edited:
        return _Change(Operation.REPLACE, _describe_edit(observed), creation)
    if observed.differences:
        return _Change(Operation.REPLACE, describe_changes(observed), creation)
    if moved:
        reason = "the locked packages have changed since it was created"
        return _Change(Operation.REPLACE, reason, creation)
    reason = "it does not exist yet"
    if observed.exists or observed.interrupted:
        reason = observed.problem
    operation = Operation.REPLACE if recorded and observed.exists else Operation.CREATE
    return _Change(operation, reason, creation)


def _describe_edit(observed: LocalObservation) -> str:
    files = f": {name_files(observed.edited_files)}" if observed.edited_files else ""
    return f"the files of {', '.join(observed.edited)} have changed{files}"


def _choose_link_change(observed: LocalObservation, *, moved: bool) -> _Change:
    """Return what is left to do with a complete environment: record it, link it, remove others."""
    if observed.recorded is None or moved:
        return _Change(Operation.CHANGE, "a complete environment of this lock already exists")
    if not observed.is_linked:
        return _Change(Operation.CHANGE, "its stable path is missing")
    if observed.unused_environments:
        reason = "the programs running in an earlier environment have ended"
        return _Change(Operation.CHANGE, reason)
    compared_by = observed.damage.compared_by
    reason = f"the packages match the lock, and the files match the installation (by {compared_by})"
    return _Change(Operation.KEEP, reason)


def _describe_environment(context: TargetContext, observed: LocalObservation) -> str:
    packages = context.lock.packages_in(context.environment)
    contents = [f"python {context.spec.python}", pluralize(len(packages), "package")]
    contents += [f"torch {package.version}" for package in packages if package.name == "torch"]
    built = [package.name for package in packages if package.built]
    contents += [f"{source.name} from {source.description}" for source in context.sources]
    if built:
        contents.append(f"{' and '.join(built)} built from source")
    conda_records = context.lock.conda_records_in(context.environment)
    if conda_records and observed.conda:
        contents.append(f"{len(conda_records)} from conda, by {observed.conda.name}")
    return f"environment {environment_path(context).name} ({', '.join(contents)})"


def _build_record(context: TargetContext, observed: LocalObservation) -> EnvironmentRecord:
    return EnvironmentRecord(
        _describe_environment(context, observed),
        "conda" if uses_conda(context) else "uv",
        (f"envs/{environment_path(context).name}", f"envs/{stable_path(context).name}"),
        context.environment.digest,
        context.lock.digest,
        context.spec.python,
        earlier=observed.environments_in_use,
        sources={source.name: source.digest for source in context.sources},
    )


def _build_intent(context: TargetContext, change: _Change) -> Intent | None:
    """Return the journal entry: the environment if it is made or repaired, and its stable path."""
    if change.operation is Operation.KEEP:
        return None
    paths = [stable_path(context)]
    if change.effects:
        paths.insert(0, environment_path(context))
    relative = tuple(path.relative_to(context.folder).as_posix() for path in paths)
    return Intent(context.address, EnvironmentRecord.part, str(change.operation), relative)


def _creation_effects(context: TargetContext, observed: LocalObservation) -> Iterator[Effect]:
    path = environment_path(context)
    if observed.exists:
        yield RemoveTree(path)
    yield MakeFolder(path.parent, 0o700)
    if uses_conda(context) and observed.conda is not None:
        yield build_prefix_effect(context, observed.conda)
    else:
        yield CreateVenv(path, context.spec.python)
    yield _install_effect(
        context, shared=uses_conda(context), earlier=_find_earlier(context, observed)
    )
    if not uses_conda(context) and "pip" not in context.lock.versions(context.environment):
        # Without it, `pip` in an activated environment would be that of another Python.
        for name in ("pip", "pip3"):
            yield WriteFile(path / "bin" / name, _build_pip_notice(context), 0o755)
    # Last, so that an environment with this file is complete.
    yield _marker_effect(context)


def _marker_effect(context: TargetContext) -> WriteFile:
    marker = json.dumps(build_marker(context), indent=1, sort_keys=True)
    return WriteFile(environment_path(context) / MARKER_FILE, marker + "\n")


def _build_pip_notice(context: TargetContext) -> str:
    """Return a program in place of pip that refuses, with the command to use."""
    message = (
        "error: provision manages the packages of this environment\n"
        f"help: change `packages` in the spec, then run `{context.command('apply')}`"
    )
    return f"#!/bin/sh\necho {shlex.quote(message)} >&2\nexit 1\n"


def _find_earlier(context: TargetContext, observed: LocalObservation) -> Path | None:
    """Return the environment of an earlier lock that uv made."""
    recorded = observed.recorded
    if recorded is None or recorded.manager != "uv" or uses_conda(context):
        return None
    earlier = resolve_own_folder(context.folder, recorded.paths[0], context.address)
    return None if earlier == environment_path(context) else earlier


def _install_effect(
    context: TargetContext,
    *,
    reinstall: tuple[str, ...] = (),
    shared: bool = False,
    earlier: Path | None = None,
) -> InstallPackages:
    packages = context.lock.packages_in(context.environment)
    flavour = context.environment.flavour
    pins, names_by_index = [], dict[str, list[str]]()
    for package in packages:
        if package.origin is not None:
            continue
        is_default = package.index == "pypi"
        digests = tuple(file.sha256 for file in package.files)
        index = None if is_default else package.index
        pins.append(PackageToInstall(package.name, package.version, index, digests, package.built))
        if not is_default:
            requirement = f"{package.name}=={package.version}"
            names_by_index.setdefault(package.index, []).append(requirement)
    indexes = tuple(
        NamedIndex(
            name,
            context.lock.indexes[name],
            flavour if name == f"pytorch-{flavour}" else None,
            tuple(requirements),
            (context.platform,),
        )
        for name, requirements in sorted(names_by_index.items())
    )
    return InstallPackages(
        environment_path(context),
        context.spec.python,
        tuple(pins),
        indexes,
        reinstall=reinstall,
        shared=shared,
        sources=context.sources,
        earlier=earlier,
    )


def plan_kernel(context: TargetContext, observed: LocalObservation) -> Action | None:
    """Return the action on the kernel; None if it neither exists nor is declared."""
    address, part, recorded = context.address, KernelRecord.part, observed.recorded_kernel
    name = build_kernel_name(address, context.folder)
    title = f"Jupyter kernel {name}"
    removals = plan_kernel_removal(recorded.outside if recorded is not None else (), address)
    target = context.spec.targets[context.target]
    if not isinstance(target, LocalTarget) or not target.kernel:
        if recorded is None:
            return None
        reason = "the spec no longer declares it"
        return Action(Operation.DESTROY, address, part, title, reason, removals)
    text = _build_kernel_file(context)
    folder = observed.kernel_folder
    record = KernelRecord(title, name, (str(folder),))
    if observed.kernel_text == text and recorded and recorded.outside == record.outside:
        reason = "it matches the spec"
        return Action(Operation.KEEP, address, part, title, reason, (), record.to_json())
    effects: tuple[Effect, ...] = (
        *(removal for removal in removals if removal.path != folder),
        MakeFolder(folder),
        WriteFile(folder / "kernel.json", text),
    )
    operation = Operation.CREATE if observed.kernel_text is None else Operation.CHANGE
    reason = "the spec sets `kernel: true`"
    return Action(operation, address, part, title, reason, effects, record.to_json())


def plan_kernel_removal(folders: Iterable[str], address: str) -> tuple[RemoveTree, ...]:
    """Return the removals of recorded folders of kernels, outside our folder.

    Raises:
        Refused: they are not kernels of this address.
    """
    paths = [Path(folder) for folder in folders]
    own_name = rf"{re.escape(build_kernel_prefix(address))}-[0-9a-f]{{8}}"
    for path in paths:
        is_own = path.parent.name == "kernels" and re.fullmatch(own_name, path.name)
        if not is_own or ".." in path.parts:
            raise Refused(
                f"refusing to remove {path}",
                why=f"the state lists it as a Jupyter kernel of {address}, but `provision` "
                "could not have created it",
                hint=FOREIGN_RECORD_HINT,
            )
    return tuple(RemoveTree(path) for path in paths)


def plan_removal(
    address: str, part: str, record: Mapping[str, Any], folder: Path, *, with_reports: bool
) -> Action:
    """Return the removal of one part; `with_reports` those that no verdict records yet."""
    earlier = tuple(record.get("earlier", ()))
    paths = [*record.get("paths", ()), *earlier]
    if with_reports:
        paths.append(f"reports/{to_folder_name(address)}")
    effects: list[Effect] = [*plan_kernel_removal(record.get("outside", ()), address)]
    effects += (RemoveTree(resolve_own_folder(folder, path, address)) for path in paths)
    if part == CondaLinkRecord.part and record.get("link") and record.get("end"):
        # A link that still leads to an environment, as that of a copied folder, is another's.
        effects.append(RemoveSymlink(Path(record["link"]), record["end"], only_if_dangling=True))
    title = str(record.get("title", part))
    for path in earlier:
        title += f", and {Path(path).name} from an earlier lock"
    reason = "destroy was requested"
    return Action(Operation.DESTROY, address, part, title, reason, tuple(effects))


def _build_kernel_file(context: TargetContext) -> str:
    # Jupyter replaces ${NAME} from its own environment, so no secret is written to disk. A $ in a
    # declared value is doubled to stay one.
    code_folder = None if context.code is None else context.code.folder
    variables = declared_variables(context.spec, code_folder)
    declared = {name: value.replace("$", "$$") for name, value in variables.items()}
    secrets = {
        name: f"${{{reference.env}}}"
        for name, reference in context.spec.secrets.items()
        if reference.env
    }
    prefix = stable_path(context)
    prefix_variable = "CONDA_PREFIX" if uses_conda(context) else "VIRTUAL_ENV"
    document = {
        "argv": [str(prefix / "bin/python"), "-c", _KERNEL_LAUNCHER, "-f", "{connection_file}"],
        "display_name": f"{context.spec.name} ({context.target})",
        "language": "python",
        "env": {
            **declared,
            **secrets,
            prefix_variable: str(prefix),
            "PATH": f"{prefix / 'bin'}:${{PATH}}",
        },
        "metadata": {"provision": {"environment_digest": context.environment.digest}},
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
