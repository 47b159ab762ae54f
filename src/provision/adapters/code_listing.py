"""Lists the files of a code folder: those that git tracks, or all of one without git."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from provision.adapters.code_selection import (
    IGNORED_FILES,
    IGNORED_FOLDERS,
    CommitState,
    Listing,
    is_excluded,
)
from provision.adapters.process import capture, run_meanwhile

_SUBMODULE = "160000"
_FORBIDDEN_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE")
_GIT_S = 60.0
_CONFIGURATION = ("core.fsmonitor=false", "core.quotePath=false", "status.aheadBehind=false")
"""A monitor of the file system is a program that the repository's configuration names. Counting the
commits of a remote branch would take time."""
_COMMIT_ROW = "# branch.oid "
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10, "?": 1}
"""Of a changed, an unmerged and an untracked file, https://git-scm.com/docs/git-status"""


@contextlib.contextmanager
def list_files(folder: Path, environment: Mapping[str, str]) -> Iterator[Listing]:
    """List the files below a folder; git compares them with the commit while the body continues.

    Args:
        folder: the folder, without links in its path.
        environment: the caller's variables.
    """
    variables = {
        **{name: value for name, value in environment.items() if name not in _FORBIDDEN_VARIABLES},
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    git = ["git", "-C", str(folder), *(word for line in _CONFIGURATION for word in ("-c", line))]
    with _compare(git, variables) as compare:
        listing = _list_tracked(git, variables) or Listing(list(_walk(folder)))
        listing.compare = compare
        yield listing


def _list_tracked(git: list[str], variables: Mapping[str, str]) -> Listing | None:
    """Return the files that git tracks; None without git or a repository."""
    try:
        listed = capture(
            [*git, "ls-files", "-z", "--stage"], variables, timeout_s=_GIT_S, is_brief=True
        )
    except FileNotFoundError:
        return None
    if listed.code:
        return None
    paths, submodules = list[str](), list[str]()
    for row in filter(None, listed.stdout.split("\0")):
        about, _, path = row.partition("\t")
        (submodules if about.startswith(_SUBMODULE) else paths).append(path)
    return Listing(list(dict.fromkeys(paths)), submodules)


@contextlib.contextmanager
def _compare(git: list[str], variables: Mapping[str, str]) -> Iterator[Callable[[], CommitState]]:
    """Start the comparison with the commit; the function waits for its result."""
    status = [*git, "status", "--porcelain=v2", "--branch", "-z"]
    status += ["--no-renames", "--untracked-files=all", "."]
    with contextlib.ExitStack() as stack:
        try:
            wait = stack.enter_context(
                run_meanwhile(status, variables, timeout_s=_GIT_S, is_brief=True)
            )
        except FileNotFoundError:
            yield CommitState
            return

        @cache
        def compare() -> CommitState:
            result = wait()
            rows = [] if result.code else list(filter(None, result.stdout.split("\0")))
            prefix = ""
            if any(row[0] != "#" for row in rows):
                query = [*git, "rev-parse", "--show-prefix"]
                prefix = capture(query, variables, timeout_s=_GIT_S, is_brief=True).stdout.strip(
                    "\n"
                )
            return _parse_status(rows, prefix)

        yield compare


def _parse_status(rows: list[str], prefix: str) -> CommitState:
    """Return what `git status --porcelain=v2` printed; `prefix` is the folder in the work tree."""
    state = CommitState()
    for row in rows:
        if row.startswith(_COMMIT_ROW):
            commit = row.removeprefix(_COMMIT_ROW)
            state.commit = "" if commit == "(initial)" else commit
        elif (fields := _FIELDS_BEFORE_PATH.get(row[0])) is not None:
            path = row.split(" ", fields)[fields].removeprefix(prefix)
            (state.untracked if row[0] == "?" else state.changed).append(path)
    return state


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files below a folder, without hidden ones and those that tools make."""
    for current, folders, names in os.walk(folder):
        above = Path(current)
        links = [name for name in folders if (above / name).is_symlink()]
        made = (*IGNORED_FOLDERS, *IGNORED_FILES, ".*")
        folders[:] = sorted(
            name for name in folders if name not in links and not is_excluded(name, made)
        )
        for name in sorted((*names, *links)):
            if not name.startswith(".") and not is_excluded(name, IGNORED_FILES):
                yield (above / name).relative_to(folder).as_posix()
