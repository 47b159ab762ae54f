"""Reads from git's index whether a folder is tracked.

Starting git would run commands from the configuration of a foreign repository.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

_HEADER = struct.Struct(">4sII")
_FIXED = 40
"""Bytes of an entry before its object name (git documentation, index-format)."""
_EXTENDED, _NAME_LENGTH = 0x4000, 0xFFF
_MAX_BYTES = 256 * 2**20


def is_tracked_by_git(folder: Path) -> bool:
    """Return whether the repository around a folder tracks a file in it.

    An index that cannot be read tracks nothing.
    """
    folder = folder.parent.resolve() / folder.name
    for parent in folder.parents:
        if (parent / ".git").exists():
            # File systems may ignore case.
            inside = os.fsencode(folder.relative_to(parent)).lower() + b"/"
            try:
                names = read_tracked_names(_index_of(parent / ".git"))
                return any(name.lower().startswith(inside) for name in names)
            except (OSError, ValueError, struct.error, IndexError):
                return False
    return False


def _index_of(git: Path) -> bytes:
    """Return the index of a repository.

    In a worktree or submodule, `.git` is a file that names the folder.
    """
    if git.is_file():
        text = git.read_text(encoding="utf-8", errors="surrogateescape")
        git = git.parent / text.removeprefix("gitdir:").strip()
    with (git / "index").open("rb") as file:
        return file.read(_MAX_BYTES)


def read_tracked_names(index: bytes) -> Iterator[bytes]:
    """Yield the names in an index of version 2, 3 or 4, with object names of SHA-1 or SHA-256.

    Raises ValueError, struct.error or IndexError for anything else.
    """
    for digest in (20, 32):
        try:
            names = list(_read_names(index, digest))
        except (ValueError, struct.error, IndexError):
            if digest == 32:
                raise
            continue
        yield from names
        return


def _read_names(index: bytes, digest: int) -> Iterator[bytes]:
    magic, version, count = _HEADER.unpack_from(index)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("it does not start with a git index header")
    offset, before = _HEADER.size, b""
    for _ in range(count):
        start = offset
        (flags,) = struct.unpack_from(">H", index, offset + _FIXED + digest)
        offset += _FIXED + digest + (4 if version >= 3 and flags & _EXTENDED else 2)
        kept = b""
        if version == 4:
            cut, offset = _number(index, offset)
            kept = before[: len(before) - cut]
        end = index.index(b"\0", offset)
        before = kept + index[offset:end]
        if len(before) != flags & _NAME_LENGTH and len(before) < _NAME_LENGTH:
            raise ValueError("the index is damaged: the length recorded for a file name is wrong")
        offset = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        yield before


def _number(index: bytes, offset: int) -> tuple[int, int]:
    """Return a number of variable width, and the offset behind it."""
    value = index[offset] & 0x7F
    while index[offset] & 0x80:
        offset += 1
        value = ((value + 1) << 7) | (index[offset] & 0x7F)
    return value, offset + 1
