"""The code that a spec declares: read from its folder, with refusals and notes for plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from glob import escape
from pathlib import Path

from provision.agent.core.code_files import CodeManifest, code_folder
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.own_files import list_own_files
from provision.effects.code import CodeProblem, CodeTree
from provision.effects.system import Reader
from provision.kinds.base import Refusal
from provision.lock import Lock
from provision.plan import Action
from provision.spec import Spec
from provision.spelling import pluralize
from provision.state import unpacked_code_parent
from provision.targets import TargetContext, get_driver
from provision.targets.stored_verdict import name_files


def read_spec_code(
    loaded: LoadedSpec, spec: Spec, target: str, lock: Lock, reader: Reader
) -> CodeTree | None:
    """Return the code of a spec at a target; None if it declares none.

    May block for a second, or for minutes if a locked commit is not in the cache. The spec, its
    lock and the files that its command writes are no part of it.
    """
    if spec.code is None:
        return None
    if spec.code.git is not None:
        if lock.code is None:
            missing = CodeProblem("the lock has no commit of the code", "run `provision lock`")
            return CodeTree(Path(), CodeManifest(()), problems=(missing,))
        written = [path for path in spec.verify.expect.files if not path.startswith(("/", "$"))]
        exclude = (*spec.code.exclude, *(f"/{escape(path)}" for path in written))
        subdirectory = spec.code.subdirectory or ""
        tree = reader.code().read_commit(lock.code.git, lock.code.commit, subdirectory, exclude)
        parent = unpacked_code_parent(loaded.folder, f"{loaded.stem}/{target}")
        return replace(tree, folder=code_folder(parent, tree.digest))
    home = loaded.path.resolve().parent
    folder = home / spec.code.path
    exclude = (*spec.code.exclude, *list_own_files(loaded, folder, reader))
    return reader.code().read_folder(folder, loaded.source.root, exclude)


def find_code_refusals(context: TargetContext) -> Iterator[Refusal]:
    """Yield why the code cannot be used."""
    for problem in context.code.problems if context.code is not None else ():
        yield Refusal(("code",), problem.why, problem.hint)


def add_code_notes(context: TargetContext, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return a target's actions; the first has notes on the code and on wheels of packages."""
    notes = [] if context.code is None else list(describe_code(context.code))
    is_elsewhere = get_driver(context).platform is not None
    named = () if context.code is None else context.code.untracked
    for source in context.sources:
        if is_elsewhere:
            notes.append(f"wheel: {source.name} from {source.description}")
        if source.untracked and source.untracked != named:
            effect = "compared" if source.editable else "part of it"
            files = name_files(source.untracked)
            notes.append(f"{source.name}: files that git does not track are not {effect}: {files}")
    if not notes or not actions:
        return actions
    first, *others = actions
    return (replace(first, notes=(*first.notes, *notes)), *others)


def describe_code(code: CodeTree) -> Iterator[str]:
    """Yield the lines of a plan about the code, its changes, and the files that are left out."""
    manifest = code.manifest
    commit = f", commit {manifest.commit[:12]}" if manifest.commit else ""
    files = pluralize(len(manifest.files), "file")
    where = f"from {code.git}" if code.git else f"in {code.folder}"
    yield f"code: {files} {where}, {code.digest[:19]}{commit}"
    if code.changed:
        what = "files differ from the commit" if manifest.commit else "files are not committed"
        yield f"warning: {what}: {name_files(code.changed)}"
    if code.untracked:
        yield f"code: files that git does not track are left out: {name_files(code.untracked)}"
    if code.secret_files:
        named = name_files(code.secret_files)
        yield f"warning: files that may contain secrets are left out of the code: {named}"
