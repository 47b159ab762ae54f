"""The code of folders and of commits, as this machine reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from provision.adapters import code_folder
from provision.agent.core.code_clone import CodeClone
from provision.agent.core.code_files import CodeManifest, find_changed_files
from provision.effects.code import CodeTree


class LocalCodeReader:
    """The `CodeReader` of this machine.

    Args:
        environment: the caller's variables.
        offline: fetch nothing.
    """

    def __init__(self, environment: Mapping[str, str], *, offline: bool = False) -> None:
        self._environment, self._offline = environment, offline

    def read_folder(self, folder: Path, root: Path, exclude: Sequence[str]) -> CodeTree:
        """See CodeReader."""
        return code_folder.read_code(folder, root, exclude, self._environment)

    def read_package(self, folder: Path, root: Path, exclude: Sequence[str]) -> CodeTree:
        """See CodeReader."""
        return code_folder.read_code(folder, root, exclude, self._environment, of_package=True)

    def find_commit(self, url: str, revision: str, subdirectory: str) -> str:
        """See CodeReader."""
        from provision.adapters import git_repository

        commit = git_repository.find_commit(url, revision, self._environment, offline=self._offline)
        git_repository.require_folder(url, commit, subdirectory, self._environment)
        return commit

    def read_commit(
        self, url: str, commit: str, subdirectory: str, exclude: Sequence[str]
    ) -> CodeTree:
        """See CodeReader."""
        from provision.adapters import code_commit

        return code_commit.read_code_commit(
            url, commit, subdirectory, exclude, self._environment, offline=self._offline
        )

    def may_have_copy(
        self, code: CodeTree, clone: CodeClone, *, compare_files: bool = False
    ) -> bool:
        """See CodeReader."""
        from provision.adapters import public_copy

        return public_copy.may_have_copy(
            code, clone, self._environment, compare_files=compare_files
        )

    def find_public_copy(self, code: CodeTree) -> CodeClone | None:
        """See CodeReader."""
        from provision.adapters import public_copy

        if self._offline:
            return None
        return public_copy.find_public_copy(code, self._environment)

    def list_edited(self, folder: Path, manifest: CodeManifest) -> tuple[str, ...]:
        """See CodeReader."""
        return tuple(find_changed_files(folder, manifest)[1])
