"""Reads the code of a project from a commit of a repository, by the rules for a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from provision.adapters.code_selection import CommitState, Listing, select_code
from provision.adapters.git_repository import git_variables, list_entries, open_commit
from provision.agent.core.code_files import CodeFile, CodeManifest
from provision.agent.core.git_objects import SUBMODULE_MODE, GitError, TreeEntry, read_blobs
from provision.effects.code import CodeProblem, CodeTree
from provision.errors import ProvisionError


class _CommitFiles:
    """The files of a commit, as `code_selection.FileSource`."""

    pointer_hint = (
        "clone the repository into the project, run `git lfs pull` there, and set `code` to that "
        "folder"
    )
    ordinary: Set[str] = frozenset()

    def __init__(
        self, repository: Path, entries: Sequence[TreeEntry], environment: Mapping[str, str]
    ) -> None:
        self._repository, self._environment = repository, environment
        self._entries = {entry.path: entry for entry in entries}

    def measure(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Return the size of each file."""
        return {path: self._entries[path].size for path in paths}

    def read(self, paths: Sequence[str]) -> Iterator[tuple[CodeFile, bytes] | CodeProblem]:
        """Yield each file."""
        entries = [self._entries[path] for path in paths]
        blobs = [entry.blob for entry in entries]
        contents = read_blobs(self._repository, blobs, git_variables(self._environment))
        for entry, content in zip(entries, contents, strict=True):
            sha256 = hashlib.sha256(content).hexdigest()
            yield CodeFile(entry.path, entry.mode, sha256), content


def read_code_commit(
    url: str,
    commit: str,
    subdirectory: str,
    exclude: Sequence[str],
    environment: Mapping[str, str],
    *,
    offline: bool = False,
) -> CodeTree:
    """Return the code of a commit, which is fetched if it is not in the user's cache.

    Its digest is that of a folder with the same files. What cannot be used is among its problems.
    """
    try:
        repository = open_commit(url, commit, environment, offline=offline)
        entries = list_entries(url, commit, subdirectory, repository, environment)
        submodules = [entry.path for entry in entries if entry.mode == SUBMODULE_MODE]
        files = [entry for entry in entries if entry.mode != SUBMODULE_MODE]
        listing = Listing([entry.path for entry in files], submodules, lambda: CommitState(commit))
        source = _CommitFiles(repository, files, environment)
        tree = select_code(Path(), listing, exclude, source, name=url)
    except ProvisionError as error:
        why = f"{error.what}: {error.why}" if error.why else error.what
        return CodeTree(Path(), CodeManifest(()), problems=(CodeProblem(why, error.hint),))
    except GitError as error:
        why = f"{repository} is damaged: {error}"
        hint = "remove that folder; it is fetched again"
        return CodeTree(Path(), CodeManifest(()), problems=(CodeProblem(why, hint),))
    return replace(tree, git=url, subdirectory=subdirectory)
