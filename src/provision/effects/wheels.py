"""Packages that are built or installed from a path or a repository."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from provision.agent.core.code_files import CodeFile
from provision.effects.code import CodeProblem


@dataclass(frozen=True, slots=True)
class RepositoryPackage:
    """A package in a repository: the full commit and its pyproject.toml, None without one.

    `submodules` are folders of the repository whose files are in others, `pointers` files of the
    package whose content is in Git LFS.
    """

    commit: str
    pyproject: str | None
    submodules: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltWheel:
    """A wheel with the name of its file."""

    name: str
    content: bytes = field(repr=False)

    @property
    def sha256(self) -> str:
        """The digest of its bytes, in hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True)
class PackageSource:
    """A package to build, or a wheel file to use.

    Attributes:
        name: Canonical name.
        digest: Digest of the folder's files or of the wheel file; the commit of a repository.
        path: The folder or the wheel file, absolute; None for a repository.
        root: The project that a folder may not leave.
        exclude: Patterns of paths in the folder that do not belong to the package.
        editable: The folder is installed itself.
        git: The address of the repository.
        commit: The commit of the repository.
        subdirectory: The folder of the package in the repository.
        build: What builds it: NAME==VERSION with the sha256 of its files; () for any.
        version: The locked version; "" while it is locked.
        problems: Reasons why it cannot be used, each with its fix.
        wheel: The wheel for a target on another machine; None if it is not built yet.
        files: The files in the digest of a folder.
        untracked: Files in the folder that git does not track, which are left out.
    """

    name: str
    digest: str
    path: Path | None = None
    root: Path = Path("/")
    exclude: tuple[str, ...] = ()
    editable: bool = False
    git: str = ""
    commit: str = ""
    subdirectory: str = ""
    build: tuple[tuple[str, tuple[str, ...]], ...] = ()
    version: str = ""
    problems: tuple[CodeProblem, ...] = ()
    wheel: BuiltWheel | None = None
    files: tuple[CodeFile, ...] = field(default=(), repr=False)
    untracked: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """The origin for people."""
        if self.path is None:
            return f"{self.git} at {self.commit[:12]}"
        path = self.path.relative_to(self.root).as_posix()
        return f"{path} (editable)" if self.editable else path

    @property
    def is_wheel(self) -> bool:
        """True for a wheel file."""
        return self.path is not None and self.path.suffix == ".whl"
