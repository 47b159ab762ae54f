"""The commit of code from a repository, as a lock has it."""

from __future__ import annotations

from provision.commands.shared.load import LoadedSpec
from provision.effects.system import Notice, ProgressCallback, System
from provision.errors import LockError, NetworkError
from provision.lock import Lock
from provision.lock.origins import LockedCode


def lock_code(
    loaded: LoadedSpec, old: Lock | None, system: System, progress: ProgressCallback
) -> LockedCode | None:
    """Return the commit of the code, None unless it is from a repository. May block for minutes.

    A commit that `old` has for the same repository and revision is kept.

    Raises:
        LockError: the repository does not have the revision or folder; the message names its line.
        NetworkError: the repository cannot be reached.
    """
    code = loaded.spec.code
    if code is None or code.git is None:
        return None
    revision = code.rev or ""
    if old is not None and old.code is not None and old.inputs.get("code") == code.source:
        revision = old.code.commit
    progress(Notice(f"reading the code from {code.git}"))
    try:
        commit = system.code().find_commit(code.git, revision, code.subdirectory or "")
    except (LockError, NetworkError) as error:
        position = loaded.position("code")
        raise type(error)(f"{position}: {error.what}", why=error.why, hint=error.hint) from None
    named = f"{code.rev} is commit" if code.rev else "the default branch is at commit"
    if code.rev != commit:
        progress(Notice(f"code: {named} {commit[:12]} of {code.git}"))
    return LockedCode(code.git, commit)
