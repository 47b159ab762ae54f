"""The name by which the user's conda finds an environment.

It is a link in the first of conda's folders that is writable, and replaces no one else's.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.effects.conda import CondaProgram
from provision.effects.local import CreateSymlink, RemoveSymlink
from provision.effects.system import Effect, Reader
from provision.plan import Action, Intent, Operation
from provision.targets.context import TargetContext
from provision.targets.local.conda_prefix import uses_conda

CONDA_LINK_PART = "name"
_DISALLOWED_IN_NAMES = " /:#"
"""What conda takes for something else in a name. Source: PREFIX_NAME_DISALLOWED_CHARS of conda
26.7.
"""


@dataclass(frozen=True, slots=True)
class CondaLink:
    """A name for an environment, as it was observed.

    `link` is the link that is or would be ours; None if there can be none, as `problem` says.
    """

    name: str
    program: CondaProgram
    link: Path | None
    expected_target: str
    actual_target: str | None = None
    problem: str = ""
    conflicting_path: Path | None = None
    """What has the name already, and is not ours."""


def find_conda_link(
    context: TargetContext,
    stable: Path,
    recorded: Mapping[str, Any] | None,
    program: CondaProgram | None,
    reader: Reader,
) -> CondaLink | None:
    """Return the name of an environment; None if no conda of the user's makes it.

    conda is asked only as long as no link of ours exists.
    """
    if not uses_conda(context) or program is None or program.path is None:
        return None
    ours = _OwnLinks(str(stable), (recorded or {}).get("end", ""), reader)
    if recorded and recorded.get("link") and ours(link := Path(recorded["link"])):
        return CondaLink(stable.name, program, link, ours.end, reader.read_link(link))
    if (
        recorded
        and recorded.get("rival")
        and _is_occupied(rival := Path(recorded["rival"]), reader)
        and not ours(rival)
    ):
        return _conflicting_link(stable.name, program, ours.end, rival)
    if unfit := [sign for sign in _DISALLOWED_IN_NAMES if sign in stable.name]:
        return CondaLink(
            stable.name,
            program,
            None,
            ours.end,
            problem=f"conda takes no name with {unfit[0]!r} in it",
        )
    folders = reader.conda_folders(program)
    paths = [folder / stable.name for folder in folders]
    if stable in paths:
        return CondaLink(
            stable.name,
            program,
            None,
            ours.end,
            problem="it has that already: the folder of environments here is one of conda's own",
        )
    rivals = [path for path in paths if _is_occupied(path, reader) and not ours(path)]
    if rivals:
        return _conflicting_link(stable.name, program, ours.end, rivals[0])
    fit = [
        *(path for path in paths if ours(path)),
        *(path for path in paths if reader.is_writable(path)),
    ]
    if not fit:
        return CondaLink(
            stable.name, program, None, ours.end, problem=_no_folder_reason(program, folders)
        )
    return CondaLink(stable.name, program, fit[0], ours.end, reader.read_link(fit[0]))


def plan_conda_link(
    context: TargetContext, link: CondaLink | None, recorded: Mapping[str, Any] | None
) -> Action | None:
    """Return the action on the name: create, keep, remove, or the reason why there is none."""
    if link is None:
        return _plan_removal_without_conda(context, recorded)
    program = link.program.name
    record: dict[str, Any] = {"name": link.name}
    if link.link is None:
        title = f"no name {link.name} for {program}"
        if link.conflicting_path is None:
            return Action(Operation.KEEP, context.address, CONDA_LINK_PART, title, link.problem)
        record |= {"rival": str(link.conflicting_path), "title": title}
        return _action(context, Operation.KEEP, link.problem, record)
    record |= {"program": program, "link": str(link.link), "end": link.expected_target}
    record["title"] = f"name {link.name} for {program}: {link.link}"
    if link.actual_target == link.expected_target:
        return _action(context, Operation.KEEP, "it leads to this environment", record)
    previous = link.actual_target or ""
    create = CreateSymlink(link.link, link.expected_target, replaced_target=previous)
    if link.actual_target is not None:
        reason = "the folder of the spec was moved"
        return _action(context, Operation.CHANGE, reason, record, create)
    reason = f"so that `{program} activate {link.name}` finds it"
    return _action(context, Operation.CREATE, reason, record, create)


def _action(
    context: TargetContext,
    operation: Operation,
    reason: str,
    record: dict[str, Any],
    *effects: Effect,
) -> Action:
    """Return an action on the name; its journal entry carries the record of what is made."""
    details = {key: str(value) for key, value in record.items()}
    intent = Intent(context.address, CONDA_LINK_PART, str(operation), details=details)
    title = record["title"]
    return Action(
        operation,
        context.address,
        CONDA_LINK_PART,
        title,
        reason,
        effects,
        record,
        intent=intent,
    )


def build_activation_command(recorded: Mapping[str, Any] | None) -> str:
    """Return the command that activates an environment by its recorded name; "" for none."""
    if not recorded or not recorded.get("link"):
        return ""
    return f"{recorded['program']} activate {shlex.quote(recorded['name'])}"


def plan_link_removal(record: Mapping[str, Any]) -> Iterator[RemoveSymlink]:
    """Yield the removal of a recorded name once its environment is gone.

    A link that still leads to an environment, as that of a copied folder, is another's.
    """
    if record.get("link") and record.get("end"):
        yield RemoveSymlink(Path(record["link"]), str(record["end"]), only_if_dangling=True)


class _OwnLinks:
    """Recognizes links to this environment.

    They lead to its path, or to its path before the folder was moved, where nothing exists now.
    """

    def __init__(self, end: str, before: str, reader: Reader) -> None:
        self.end, self._before, self._reader = end, before, reader

    def __call__(self, path: Path) -> bool:
        found = self._reader.read_link(path)
        return found == self.end or (
            found is not None and found == self._before and not self._reader.exists(path)
        )


def _is_occupied(path: Path, reader: Reader) -> bool:
    return reader.exists(path) or reader.read_link(path) is not None


def _conflicting_link(name: str, program: CondaProgram, end: str, rival: Path) -> CondaLink:
    flaw = (
        f"{rival} is there already and is not this environment; it stays. Move it away "
        f"(`{program.name} rename`), or activate this one by its path"
    )
    return CondaLink(name, program, None, end, problem=flaw, conflicting_path=rival)


def _no_folder_reason(program: CondaProgram, folders: tuple[Path, ...]) -> str:
    if not folders:
        return (
            f"`{program.name} info --json` does not tell where it looks for environments; "
            "activate it by its path"
        )
    listed = ", ".join(str(folder) for folder in folders)
    return (
        f"none of its folders may be written to ({listed}); add one of yours to envs_dirs, or "
        "activate it by its path"
    )


def _plan_removal_without_conda(
    context: TargetContext, recorded: Mapping[str, Any] | None
) -> Action | None:
    """Return the removal of a name if conda has no part in the environment any more; else None."""
    if recorded is None or uses_conda(context):
        return None
    because = "the environment is no longer one of conda"
    effects = (
        (RemoveSymlink(Path(recorded["link"]), str(recorded["end"])),)
        if recorded.get("link")
        else ()
    )
    return Action(
        Operation.DESTROY,
        context.address,
        CONDA_LINK_PART,
        str(recorded.get("title", CONDA_LINK_PART)),
        because,
        effects,
    )
