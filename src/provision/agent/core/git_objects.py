"""Reads the files of a commit from git's objects, without a work tree and without filters."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SUBMODULE_MODE = 0o160000
MAX_POINTER_BYTES = 1024
"""A pointer of Git LFS is smaller (its specification)."""
_POINTER = b"version https://git-lfs.github.com/spec/"


class GitError(Exception):
    """git failed; the text is a line that it wrote."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, link or submodule in a commit; `size` is in bytes, 0 for a submodule."""

    path: str
    mode: int
    blob: str
    size: int


def run_git(
    folder: Path,
    variables: Mapping[str, str],
    *words: str,
    stdin: bytes = b"",
    timeout_s: float = 600.0,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder without a terminal; `variables` are all of its variables.

    Raises:
        FileNotFoundError: git is not installed.
        subprocess.TimeoutExpired: it did not end within `timeout_s`.
    """
    return subprocess.run(
        ["git", "-C", str(folder), *words],
        env=dict(variables),
        input=stdin,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )


def list_commit(
    repository: Path, commit: str, folder: str, variables: Mapping[str, str]
) -> list[TreeEntry]:
    """Return the entries below a folder of a commit ("": all), with paths relative to it.

    Raises:
        GitError: the repository does not have the commit, or the commit not the folder.
    """
    tree = f"{commit}:{folder}" if folder not in ("", ".") else commit
    listed = _ask(repository, variables, "ls-tree", "-r", "-z", "-l", "--full-tree", tree)
    entries = []
    for row in filter(None, listed.split(b"\0")):
        about, _, path = row.partition(b"\t")
        mode, _, blob, size = about.split()
        count = 0 if size == b"-" else int(size)
        name = path.decode(errors="replace")
        entries.append(TreeEntry(name, int(mode, 8), blob.decode(), count))
    return entries


def read_blobs(
    repository: Path, blobs: Sequence[str], variables: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield the content of blobs in their order. Raises GitError."""
    if not blobs:
        return
    names = "".join(f"{blob}\n" for blob in blobs).encode()
    output = _ask(repository, variables, "cat-file", "--batch", stdin=names)
    position = 0
    for blob in blobs:
        end = output.index(b"\n", position)
        header = output[position:end].split()
        if len(header) != 3:
            raise GitError(f"the object {blob} is missing")
        start = end + 1
        position = start + int(header[2]) + 1  # a line break follows each object
        yield output[start : position - 1]


def is_lfs_pointer(content: bytes) -> bool:
    """Return whether a content is a pointer of Git LFS, which stands for the file itself."""
    return len(content) < MAX_POINTER_BYTES and content.startswith(_POINTER)


def find_error_line(output: bytes) -> str:
    """Return the first line that git wrote, without warnings; "" if it wrote none.

    The lines after it are general advice.
    """
    lines = (line.strip() for line in output.decode(errors="replace").splitlines())
    return next((line for line in lines if line and not line.lower().startswith("warning:")), "")


def _ask(repository: Path, variables: Mapping[str, str], *words: str, stdin: bytes = b"") -> bytes:
    answer = run_git(repository, variables, *words, stdin=stdin)
    if answer.returncode:
        raise GitError(find_error_line(answer.stderr))
    return answer.stdout
