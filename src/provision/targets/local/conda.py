"""Conda in a local environment: the prefix, its packages, and the name that conda finds it by.

The name is a link in the first of conda's folders that is writable, and replaces no one else's.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from provision.effects.conda import CondaChannel, CondaProgram, CreateCondaPrefix
from provision.effects.local import CreateSymlink, RemoveSymlink
from provision.effects.system import Effect, Reader
from provision.kinds.base import Refusal
from provision.lock.conda_request import requested_conda_names, to_index_name
from provision.plan import Action, Intent, Operation
from provision.spec import LocalTarget
from provision.targets.context import TargetContext
from provision.targets.local.records import CondaLinkRecord, environment_path

INSTALL_RECORD = "installed.json"
"""In an environment: the origin of each package."""
_DISALLOWED_IN_NAMES = " /:#"
"""Characters that a name must not contain (PREFIX_NAME_DISALLOWED_CHARS of conda 26.7)."""


def uses_conda(context: TargetContext) -> bool:
    """Return whether the target declares `manager: conda`."""
    target = context.spec.targets[context.target]
    return isinstance(target, LocalTarget) and target.manager == "conda"


def build_prefix_effect(context: TargetContext, program: CondaProgram) -> CreateCondaPrefix:
    """Return the effect that makes the conda prefix."""
    records = context.lock.conda_records_in(context.environment)
    indexes = context.spec.indexes
    channels = tuple(
        CondaChannel(name, indexes[name].url if name in indexes else "")
        for name in sorted({record.channel for record in records})
    )
    requested = requested_conda_names(context.spec)
    requirements = tuple(
        f"{record.name} =={record.version} {record.build}"
        for record in records
        if record.name in requested
    )
    path = environment_path(context)
    return CreateCondaPrefix(path, context.platform, channels, records, requirements, program)


def find_conda_refusals(
    context: TargetContext, program: CondaProgram | None, *, is_foreign: bool
) -> Iterator[Refusal]:
    """Yield why conda cannot make the environment here.

    With `is_foreign` something that provision did not make is at its path.
    """
    route = ("targets", context.target, "manager")
    if program is None:
        from provision.extras import install_command

        yield Refusal(
            route,
            "conda environments need py-rattler, which is not installed",
            install_command("conda"),
        )
    if not context.lock.conda_records_in(context.environment):
        yield Refusal(
            route,
            "the lock has no conda packages",
            "write the lock again with `provision lock --upgrade`",
        )
    if is_foreign:
        yield Refusal(
            (),
            f"{environment_path(context)} already exists, and there is no sign that provision "
            "created it",
            "check its contents, then move or remove it",
        )
    if context.platform.startswith("windows"):
        yield Refusal(route, "conda environments need Linux or macOS", "run provision inside WSL")


def find_conda_drift(context: TargetContext, entries: tuple[str, ...]) -> Iterator[str]:
    """Yield the differences of conda's records (`entries` of conda-meta) from the lock."""
    records = context.lock.conda_records_in(context.environment)
    locked = {record.stem: record for record in records}
    installed = {entry.removesuffix(".json") for entry in entries if entry.endswith(".json")}
    for stem in sorted(locked.keys() - installed):
        yield f"conda package {locked[stem].name} {locked[stem].version} is missing"
    for stem in sorted(installed - locked.keys()):
        yield f"conda package {stem} was added"
    if "history" not in entries:
        yield "conda-meta/history is missing"


def list_python_names(context: TargetContext) -> frozenset[str]:
    """Return the names that Python's installers use for conda's packages.

    They are derived from conda's own names, which mostly are the same.
    """
    records = context.lock.conda_records_in(context.environment)
    return frozenset(to_index_name(record.name) for record in records)


def read_python_packages(
    context: TargetContext, install_record: Mapping[str, Any] | None
) -> dict[str, str]:
    """Return name and version of conda's Python packages, as noted when they were linked."""
    stems = {record.stem for record in context.lock.conda_records_in(context.environment)}
    packages = (install_record or {}).get("packages")
    if not isinstance(packages, Mapping):
        return {}
    return {
        name: str(package.get("version"))
        for name, package in packages.items()
        if isinstance(package, Mapping) and str(package.get("conda")) in stems
    }


@dataclass(frozen=True, slots=True)
class CondaLink:
    """A name for an environment, as it was observed.

    Attributes:
        expected_target: The path of the environment.
        link: The link that is or would be ours; None if there can be none.
        actual_target: The end of that link; None if it does not exist.
        problem: Why there can be no link.
        rival: Something else that has the name already.
    """

    name: str
    program: CondaProgram
    expected_target: str
    link: Path | None = None
    actual_target: str | None = None
    problem: str = ""
    rival: Path | None = None


def find_conda_link(
    context: TargetContext,
    stable: Path,
    recorded: CondaLinkRecord | None,
    program: CondaProgram | None,
    reader: Reader,
) -> CondaLink | None:
    """Return the name of an environment; None if the user's conda does not make it.

    conda is started only as long as our link does not exist.
    """
    if not uses_conda(context) or program is None or program.path is None:
        return None

    def is_ours(path: Path) -> bool:
        """Return whether a link leads to the environment, or to its path before a move."""
        end = reader.read_link(path)
        if end is None or end == str(stable):
            return end is not None
        return recorded is not None and end == recorded.end and not reader.exists(path)

    def is_rival(path: Path) -> bool:
        is_occupied = reader.exists(path) or reader.read_link(path) is not None
        return is_occupied and not is_ours(path)

    observed = CondaLink(stable.name, program, str(stable))
    if recorded and recorded.link and is_ours(path := Path(recorded.link)):
        return replace(observed, link=path, actual_target=reader.read_link(path))
    if recorded and recorded.rival and is_rival(path := Path(recorded.rival)):
        return _with_rival(observed, path)
    for character in _DISALLOWED_IN_NAMES:
        if character in stable.name:
            return replace(
                observed, problem=f"conda does not accept names that contain {character!r}"
            )
    folders = reader.conda_folders(program)
    paths = [folder / stable.name for folder in folders]
    if stable in paths:
        problem = "not needed: conda already searches the folder of this environment"
        return replace(observed, problem=problem)
    for path in paths:
        if is_rival(path):
            return _with_rival(observed, path)
    usable = [*filter(is_ours, paths), *filter(reader.is_writable, paths)]
    if not usable:
        return replace(observed, problem=_no_folder_reason(program, folders))
    return replace(observed, link=usable[0], actual_target=reader.read_link(usable[0]))


def _with_rival(observed: CondaLink, rival: Path) -> CondaLink:
    problem = (
        f"{rival} is a different environment and is kept; rename it (`{observed.program.name} "
        "rename`), or activate this environment by its path"
    )
    return replace(observed, problem=problem, rival=rival)


def _no_folder_reason(program: CondaProgram, folders: tuple[Path, ...]) -> str:
    if not folders:
        return (
            f"`{program.name} info --json` lists no environment folders; "
            "activate the environment by its path"
        )
    listed = ", ".join(str(folder) for folder in folders)
    return (
        f"none of conda's environment folders is writable ({listed}); add a writable folder to "
        "`envs_dirs`, or activate the environment by its path"
    )


def plan_conda_link(
    context: TargetContext, observed: CondaLink | None, recorded: CondaLinkRecord | None
) -> Action | None:
    """Return the action on the name: create, keep, remove, or the reason why there is none."""
    if observed is None:
        return _plan_removal_without_conda(context, recorded)
    name, program = observed.name, observed.program.name
    if observed.link is None:
        title = f"no name {name} for {program}"
        if observed.rival is None:
            part = CondaLinkRecord.part
            return Action(Operation.KEEP, context.address, part, title, observed.problem)
        record = CondaLinkRecord(title, name, rival=str(observed.rival))
        return _action(context, Operation.KEEP, observed.problem, record)
    title = f"name {name} for {program}: {observed.link}"
    record = CondaLinkRecord(title, name, program, str(observed.link), observed.expected_target)
    if observed.actual_target == observed.expected_target:
        return _action(context, Operation.KEEP, "it links to this environment", record)
    create = CreateSymlink(
        observed.link, observed.expected_target, replaced_target=observed.actual_target or ""
    )
    if observed.actual_target is not None:
        reason = "the spec's folder was moved"
        return _action(context, Operation.CHANGE, reason, record, create)
    reason = f"so that `{program} activate {name}` finds it"
    return _action(context, Operation.CREATE, reason, record, create)


def _action(
    context: TargetContext,
    operation: Operation,
    reason: str,
    record: CondaLinkRecord,
    *effects: Effect,
) -> Action:
    """Return an action on the name; its journal entry carries the record of what is made."""
    document = record.to_json()
    intent = Intent(context.address, record.part, str(operation), details=document)
    return Action(
        operation,
        context.address,
        record.part,
        record.title,
        reason,
        effects,
        document,
        intent=intent,
    )


def _plan_removal_without_conda(
    context: TargetContext, recorded: CondaLinkRecord | None
) -> Action | None:
    """Return the removal of a name that the environment, not made by conda any more, needs not."""
    if recorded is None or uses_conda(context):
        return None
    effects = (RemoveSymlink(Path(recorded.link), recorded.end),) if recorded.link else ()
    reason = "conda no longer creates this environment"
    return Action(
        Operation.DESTROY, context.address, recorded.part, recorded.title, reason, effects
    )


def build_activation_command(recorded: CondaLinkRecord | None) -> str:
    """Return the command that activates an environment by its recorded name; "" for none."""
    if recorded is None or not recorded.link:
        return ""
    return f"{recorded.program} activate {shlex.quote(recorded.name)}"
