"""Code from a repository at a local target: unpacked in our own folder, and removed with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.effects.code import RemoveCode, UnpackCode
from provision.effects.system import Effect, Reader
from provision.errors import Refused
from provision.plan import Action, Operation
from provision.spelling import pluralize
from provision.state import FOREIGN_RECORD_HINT, unpacked_code_parent
from provision.targets.context import TargetContext
from provision.targets.local.records import CodeRecord

ABSENT = "it does not exist yet"


def find_code_problem(context: TargetContext, reader: Reader) -> str:
    """Return why the code has to be unpacked; "" if it is as planned, or is a folder itself."""
    code = context.code
    if code is None or not code.git or code.problems:
        return ""
    if not reader.exists(code.folder):
        return ABSENT
    edited = reader.code().list_edited(code.folder, code.manifest)
    return f"{pluralize(len(edited), 'file')} of it differ from the commit" if edited else ""


def plan_code(context: TargetContext, problem: str, recorded: CodeRecord | None) -> Action | None:
    """Return what is done with the code; None if it is a folder, and was so before."""
    code, parent = context.code, unpacked_code_parent(context.folder, context.address)
    if code is None or not code.git:
        if recorded is None:
            return None
        effects: tuple[Effect, ...] = (RemoveCode(parent),)
        reason = "the spec no longer takes it from a repository"
        return Action(
            Operation.DESTROY, context.address, CodeRecord.part, recorded.title, reason, effects
        )
    commit = code.manifest.commit
    title = f"code {commit[:12]} from {code.git}"
    record = CodeRecord(title, (parent.relative_to(context.folder).as_posix(),), code.digest)
    operation, reason, effects = Operation.KEEP, "its files match the commit", ()
    if problem or recorded is None:
        operation = Operation.CREATE if recorded is None else Operation.CHANGE
        reason = problem or "it is added to the state"
    elif recorded != record:
        operation, reason = Operation.CHANGE, "the locked commit has changed"
    if problem:
        if problem == ABSENT and recorded is not None:
            reason = "the code has changed; the earlier files stay"
        effects = (UnpackCode(code.pack(), code.digest, parent),)
    return Action(
        operation,
        context.address,
        CodeRecord.part,
        title,
        reason,
        effects,
        record.to_json(),
    )


def plan_code_removal(address: str, record: Mapping[str, Any], folder: Path) -> Action:
    """Return the removal of unpacked code.

    Raises:
        Refused: the record names a folder that provision does not create.
    """
    parent = unpacked_code_parent(folder, address)
    own = parent.relative_to(folder).as_posix()
    if list(record.get("paths", ())) != [own]:
        raise Refused(
            f"the code folder that the state lists for {address} is not one that provision creates",
            why=f"the state lists {', '.join(map(str, record.get('paths', ())))}; expected {own}",
            hint=FOREIGN_RECORD_HINT,
        )
    title, reason = str(record.get("title", CodeRecord.part)), "destroy was requested"
    return Action(Operation.DESTROY, address, CodeRecord.part, title, reason, (RemoveCode(parent),))
