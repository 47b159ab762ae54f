"""The code of a project as it was read: its files, and what stands in the way of using it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from provision.agent.core.code_clone import CLONE, CodeClone
from provision.agent.core.code_files import ARCHIVE, CodeManifest, pack_code


@dataclass(frozen=True, slots=True)
class CodeProblem:
    """A reason why a folder cannot be used as code, with its fix."""

    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class CodeTree:
    """A folder of code.

    Attributes:
        folder: The folder, absolute.
        manifest: Its files with their digest, the commit, and whether files differ from it.
        contents: The content of each file by its path, which may be read only now: raises
            ExternalError if the file has changed since.
        secret_files: Files that are left out, because by their names they contain secrets.
        untracked: Files that git does not track, which are left out.
        changed: Tracked files that differ from the commit.
        problems: Reasons why it cannot be used.
        git: The repository that it is read from; "" for a folder of the project.
        subdirectory: The folder of the code in that repository.
        members: What a payload has of it, by name; empty for the archive.
    """

    folder: Path
    manifest: CodeManifest
    contents: Mapping[str, bytes] = field(repr=False, default_factory=dict)
    secret_files: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[CodeProblem, ...] = ()
    git: str = ""
    subdirectory: str = ""
    members: Mapping[str, bytes] = field(repr=False, default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest over path, mode and content of every file."""
        return self.manifest.digest

    def pack(self) -> bytes:
        """Return the archive of the files."""
        return pack_code(self.manifest, self.contents)

    def pack_members(self) -> Mapping[str, bytes]:
        """Return the files that a payload has of it, by name."""
        return self.members or {ARCHIVE: self.pack()}

    def describe_members(self) -> bytes:
        """Return what these files follow from: the clone, or digest, commit and dirty state."""
        return self.members.get(CLONE) or self.manifest.describe_origin()


class UnpackCode(NamedTuple):
    """Write the files of an archive below `path`, into a folder of their digest.

    Folders of other code, and edited files, are kept.
    """

    archive: bytes
    digest: str
    path: Path


class RemoveCode(NamedTuple):
    """Remove the unmodified files of code that was unpacked below `path`.

    Other files stay, and progress reports that.
    """

    path: Path


class CodeReader(Protocol):
    """Reads code of folders and of commits; commits stay in the user's cache."""

    def read_folder(self, folder: Path, root: Path, exclude: Sequence[str]) -> CodeTree:
        """Return the code of a folder; what cannot be used is among its problems.

        May block: about 0.1 s for 1000 files, and 10 ms if they are as they were last time.

        Args:
            folder: the folder, absolute.
            root: the project, which the folder may not leave.
            exclude: patterns of paths, or of names of files and folders, that are left out.
        """

    def read_package(self, folder: Path, root: Path, exclude: Sequence[str]) -> CodeTree:
        """Return the files that a package is built from, as `read_folder` does.

        The hints of problems do not mention `code.exclude`.
        """

    def find_commit(self, url: str, revision: str, subdirectory: str) -> str:
        """Return the full commit of a branch, a tag or a commit. May block for minutes.

        The user's git reads it, with the user's credentials.

        Raises:
            LockError: the repository does not have the revision or folder.
            NetworkError: the repository cannot be reached.
        """

    def read_commit(
        self, url: str, commit: str, subdirectory: str, exclude: Sequence[str]
    ) -> CodeTree:
        """Return the code of a commit, as `read_folder` does.

        May block for minutes if the commit is not in the cache.
        """

    def may_have_copy(
        self, code: CodeTree, clone: CodeClone, *, compare_files: bool = False
    ) -> bool:
        """Return whether a repository of some code may still have a commit, offline.

        With `compare_files`, its commit must have the files of the code: somebody may have edited
        the description.

        It does not if this clone of the repository has the commit, but no branch of a remote does.
        A shallow clone may not have the commit, and then nothing is known of it.
        """

    def find_public_copy(self, code: CodeTree) -> CodeClone | None:
        """Return the commit that anybody can clone and that has exactly the files of some code.

        None if there is none, also if the server does not answer within 20 s.
        """

    def list_edited(self, folder: Path, manifest: CodeManifest) -> tuple[str, ...]:
        """Return the files of a list that are missing in a folder or differ there."""
