"""The origin of a locked package that is not from an index: a path or a commit of a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LockedOrigin:
    """The path or the commit of a package, and the digest of its static metadata.

    Attributes:
        metadata: Digest of name, version and requirements.
        path: The folder or wheel file, relative to the root of the project; "" for a repository.
        editable: The folder itself is imported.
        git: Address of the repository, without credentials; "" for a path.
        commit: The full commit.
        subdirectory: Folder of the package in the repository.
        build: What builds the wheel: NAME==VERSION with the sha256 of its files.
    """

    metadata: str
    path: str = ""
    editable: bool = False
    git: str = ""
    commit: str = ""
    subdirectory: str = ""
    build: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_document(self) -> dict[str, Any]:
        """Return its entry in the lock."""
        fields = ("path", "editable", "git", "commit", "subdirectory", "metadata")
        document = {key: getattr(self, key) for key in fields if getattr(self, key)}
        if self.build:
            document["build"] = dict(self.build)
        return document

    @classmethod
    def from_document(cls, part: Mapping[str, Any]) -> LockedOrigin:
        """Return the origin of an entry."""
        build = tuple((line, tuple(hashes)) for line, hashes in part.get("build", {}).items())
        return cls(**{**part, "build": build})

    @property
    def is_wheel(self) -> bool:
        """True for a wheel file."""
        return self.path.endswith(".whl")

    @property
    def description(self) -> str:
        """The origin for people."""
        if self.path:
            return f"{self.path} (editable)" if self.editable else self.path
        folder = f", {self.subdirectory}" if self.subdirectory else ""
        return f"{self.git} at {self.commit[:12]}{folder}"


@dataclass(frozen=True, slots=True)
class LockedCode:
    """The repository of a project's code, without credentials, and the full commit."""

    git: str
    commit: str

    def to_document(self) -> dict[str, str]:
        """Return its entry in the lock."""
        return {"git": self.git, "commit": self.commit}

    @property
    def description(self) -> str:
        """The origin for people."""
        return f"{self.git} at {self.commit[:12]}"


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ADDRESS = re.compile(r"(https://[^/@\s]+/|ssh://(?![^/]*:[^/]*@))[^\s?#]+")
_BUILD_LINE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?==[A-Za-z0-9.!+_-]+")
_HEXADECIMAL = re.compile(r"[0-9a-f]{64}")


def find_code_flaws(code: LockedCode) -> Iterator[str]:
    """Yield what is wrong with a repository and its commit."""
    if not _ADDRESS.fullmatch(code.git):
        yield "the address of its repository is not https or ssh, or has a password"
    if not _COMMIT.fullmatch(code.commit):
        yield f"{code.commit!r} is not a full commit"


def find_origin_flaws(origin: LockedOrigin) -> Iterator[str]:
    """Yield what `provision lock` would not have written."""
    if not _DIGEST.fullmatch(origin.metadata):
        yield "the digest of its metadata is not a sha256 digest"
    if bool(origin.path) == bool(origin.git):
        yield "its source names a path and a repository, or neither"
    if origin.path.startswith("/") or ".." in origin.path.split("/"):
        yield f"its path {origin.path!r} leaves the project"
    if origin.git:
        yield from find_code_flaws(LockedCode(origin.git, origin.commit))
    if ".." in origin.subdirectory.split("/") or origin.subdirectory.startswith("/"):
        yield f"its folder {origin.subdirectory!r} leaves the repository"
    for line, hashes in origin.build:
        if not _BUILD_LINE.fullmatch(line) or not all(map(_HEXADECIMAL.fullmatch, hashes)):
            yield f"{line!r} is not NAME==VERSION with sha256 hashes"
