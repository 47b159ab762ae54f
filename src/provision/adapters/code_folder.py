"""Reads the code of a project: the tracked files of a folder, or all of one without git."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from provision.adapters.code_selection import (
    IGNORED_FILES,
    IGNORED_FOLDERS,
    OR_EXCLUDE,
    Listing,
    is_excluded,
    select_code,
)
from provision.adapters.process import capture
from provision.agent.core.code_files import CodeFile, CodeManifest, read_code_file
from provision.effects.code import CodeProblem, CodeTree
from provision.sanitize import escape_line

_SUBMODULE = "160000"
_FORBIDDEN_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE")
_GIT_S = 60.0


class _FolderFiles:
    """The files of a folder, as `code_selection.FileSource`."""

    pointer_hint = "run `git lfs pull`"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def measure(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Return the size of each file; a removed one is left out, and makes the tree dirty."""
        return {
            path: os.lstat(self._folder / path).st_size
            for path in paths
            if os.path.lexists(self._folder / path)
        }

    def read(self, paths: Sequence[str]) -> Iterator[tuple[CodeFile, bytes] | CodeProblem]:
        """Yield each file, or why it cannot be read."""
        for path in paths:
            try:
                yield read_code_file(self._folder, path)
            except OSError as error:
                why = f"{escape_line(path)} cannot be read: {error.strerror}"
                yield CodeProblem(why, f"make it readable{OR_EXCLUDE}")


def read_code(
    folder: Path,
    root: Path,
    exclude: Sequence[str],
    environment: Mapping[str, str],
    *,
    of_package: bool = False,
) -> CodeTree:
    """Return the code of a folder; what cannot be used is among its problems.

    Args:
        folder: the folder, absolute.
        root: the project, which the folder may not leave.
        exclude: patterns of paths, or of names of files and folders, that are left out.
        environment: the caller's variables.
        of_package: it is the folder of a package: the files that git neither tracks nor ignores
            are taken too, and no field of the spec leaves files out.
    """
    real = Path(os.path.realpath(folder))
    if problem := _folder_problem(folder, real, root):
        return CodeTree(folder, CodeManifest(()), problems=(problem,))
    listing = _list_files(real, environment, untracked=of_package)
    return select_code(real, listing, exclude, _FolderFiles(real), of_package=of_package)


def _folder_problem(folder: Path, real: Path, root: Path) -> CodeProblem | None:
    if not real.is_relative_to(root):
        return CodeProblem(
            f"{folder} is outside the project {root}", "use a folder inside the project"
        )
    if not real.is_dir():
        return CodeProblem(f"{folder} is not a folder", "use the folder that contains the code")
    return None


def _list_files(folder: Path, environment: Mapping[str, str], *, untracked: bool) -> Listing:
    listing = _list_tracked(folder, environment) or Listing(list(_walk(folder)))
    if untracked:
        ignored = (*IGNORED_FOLDERS, *IGNORED_FILES, ".*")
        new = [path for path in listing.untracked if not is_excluded(path, ignored)]
        listing.paths, listing.untracked = sorted([*listing.paths, *new]), []
    return listing


def _list_tracked(folder: Path, environment: Mapping[str, str]) -> Listing | None:
    """Return the files that git tracks below a folder; None without git or a repository."""
    variables = {
        **{name: value for name, value in environment.items() if name not in _FORBIDDEN_VARIABLES},
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    # A monitor of the file system is a program that the repository's configuration names.
    git = ["git", "-C", str(folder), "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]

    def ask(*words: str) -> str | None:
        try:
            answer = capture([*git, *words], variables, timeout_s=_GIT_S)
        except FileNotFoundError:
            return None
        return answer.stdout if answer.code == 0 else None

    listed = ask("ls-files", "-z", "--stage")
    if listed is None:
        return None
    paths, submodules = list[str](), list[str]()
    for row in filter(None, listed.split("\0")):
        about, _, path = row.partition("\t")
        (submodules if about.startswith(_SUBMODULE) else paths).append(path)
    found = Listing(list(dict.fromkeys(paths)), submodules=submodules)
    found.commit = (ask("rev-parse", "--verify", "--quiet", "HEAD") or "").strip()
    prefix = (ask("rev-parse", "--show-prefix") or "").strip("\n")
    status = ask("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", ".")
    for row in filter(None, (status or "").split("\0")):
        path = row[3:].removeprefix(prefix)
        (found.untracked if row.startswith("??") else found.changed).append(path)
    return found


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files below a folder, without hidden ones and those that tools make."""
    for current, folders, names in os.walk(folder):
        above = Path(current)
        links = [name for name in folders if (above / name).is_symlink()]
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in IGNORED_FOLDERS and name not in links
        )
        for name in sorted((*names, *links)):
            if not name.startswith(".") and not is_excluded(name, IGNORED_FILES):
                yield (above / name).relative_to(folder).as_posix()
