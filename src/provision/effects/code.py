"""The code of a project as it was read: its files, and what stands in the way of using it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from provision.agent.core.code_files import CodeManifest, pack_code


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
        contents: The content of each file by its path.
        secret_files: Files that are left out, because by their names they contain secrets.
        untracked: Files that git does not track, which are left out.
        changed: Tracked files that differ from the commit.
        problems: Reasons why it cannot be used.
    """

    folder: Path
    manifest: CodeManifest
    contents: Mapping[str, bytes] = field(repr=False, default_factory=dict)
    secret_files: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[CodeProblem, ...] = ()

    @property
    def digest(self) -> str:
        """The digest over path, mode and content of every file."""
        return self.manifest.digest

    def pack(self) -> bytes:
        """Return the archive of the files."""
        return pack_code(self.manifest, self.contents)
