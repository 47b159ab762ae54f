"""Code that a device clones from a public repository, in place of an archive."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .code_files import (
    MANIFEST,
    CodeError,
    CodeFile,
    CodeManifest,
    code_folder,
    find_changed_files,
    pack_code,
    unpack_code,
)
from .git_objects import GitError, TreeEntry, find_error_line, list_commit, read_blobs, run_git

CLONE = "code.json"
"""The name of the description among the files of a cell, in place of the archive."""
_SCHEMA = "provision.code-clone/1"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_URL = re.compile(r"https://[^/@\s]+/[^\s]+")


@dataclass(frozen=True, slots=True)
class CodeClone:
    """A commit of a public repository that has the files of some code.

    Attributes:
        url: Address of the repository: https, without credentials.
        commit: The full commit.
        subdirectory: The folder of the code in the repository; "" for the top.
        left_out: Files of that folder that do not belong to the code.
        digest: Digest of the code.
    """

    url: str
    commit: str
    subdirectory: str
    left_out: tuple[str, ...]
    digest: str

    def to_bytes(self) -> bytes:
        """Return the description as JSON, the same bytes for the same values."""
        return json.dumps({"schema": _SCHEMA, **asdict(self)}, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> CodeClone:
        """Return a description. Raises CodeError if it is not one."""
        try:
            document: dict[str, Any] = json.loads(content)
            if document.pop("schema") != _SCHEMA:
                raise CodeError(f"{CLONE} does not declare the schema {_SCHEMA}")
            clone = cls(**{**document, "left_out": tuple(document["left_out"])})
            if not (_URL.fullmatch(clone.url) and _COMMIT.fullmatch(clone.commit)):
                raise CodeError(f"{CLONE} does not name a commit of a public repository")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise CodeError(f"{CLONE} is damaged") from None
        return clone


def select_entries(entries: list[TreeEntry], left_out: frozenset[str]) -> list[TreeEntry]:
    """Return the entries that belong to code."""
    return [entry for entry in entries if entry.path not in left_out]


def read_entries(
    repository: Path, entries: list[TreeEntry], variables: Mapping[str, str]
) -> tuple[tuple[CodeFile, ...], dict[str, bytes]]:
    """Return the files of entries with their contents. Raises GitError."""
    blobs = read_blobs(repository, [entry.blob for entry in entries], variables)
    contents = {entry.path: blob for entry, blob in zip(entries, blobs, strict=True)}
    files = tuple(
        CodeFile(entry.path, entry.mode, hashlib.sha256(contents[entry.path]).hexdigest())
        for entry in entries
    )
    return files, contents


def clone_code(clone: CodeClone, parent: Path, variables: Mapping[str, str]) -> Path:
    """Clone code below a folder, and return the folder of its files. May block for minutes.

    A folder of the same digest is used as it is, without a network.

    Raises:
        CodeError: it cannot be cloned, or the commit has other files.
        OSError: a file cannot be written.
    """
    tree = code_folder(parent, clone.digest)
    if _is_whole(tree, clone.digest):
        return tree
    parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=parent, prefix=".clone.") as scratch:
            repository = Path(scratch)
            _fetch(clone, repository, variables)
            entries = list_commit(repository, clone.commit, clone.subdirectory, variables)
            own = select_entries(entries, frozenset(clone.left_out))
            files, contents = read_entries(repository, own, variables)
    except GitError as error:
        raise CodeError(str(error) or "git failed without a message") from None
    manifest = CodeManifest(files, clone.commit)
    if manifest.digest != clone.digest:
        raise CodeError(f"commit {clone.commit[:12]} does not contain this notebook's files")
    return unpack_code(pack_code(manifest, contents), clone.digest, parent)


def _is_whole(tree: Path, digest: str) -> bool:
    try:
        manifest = CodeManifest.from_json(json.loads((tree.parent / MANIFEST).read_bytes()))
    except (OSError, ValueError, CodeError):
        return False
    return manifest.digest == digest and not find_changed_files(tree, manifest)[1]


def _fetch(clone: CodeClone, repository: Path, variables: Mapping[str, str]) -> None:
    words = ("fetch", "--quiet", "--no-tags", "--depth=1", clone.url, clone.commit)
    try:
        for command in (("init", "--quiet", "--bare", "."), words):
            answer = run_git(repository, {**variables, "GIT_TERMINAL_PROMPT": "0"}, *command)
            if answer.returncode:
                raise CodeError(find_error_line(answer.stderr) or f"git {command[0]} failed")
    except FileNotFoundError:
        raise CodeError("git is not installed") from None
    except subprocess.TimeoutExpired as error:
        raise CodeError(f"git did not finish within {error.timeout:.0f} s") from None
