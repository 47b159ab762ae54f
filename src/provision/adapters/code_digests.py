"""Digests of the files of a code folder, kept in the user's cache by the metadata of each file.

The cache saves reading a file, and never decides what a folder contains. It is in the user's cache
and not in the project, because a checkout from elsewhere could bring its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from provision import __version__
from provision.adapters.diagnostic_log import log
from provision.adapters.files import make_folder, user_cache_folder, write
from provision.adapters.user_cache import CODE_DIGESTS, mark_used, prune_cache
from provision.agent.core.code_files import CodeFile, to_git_mode
from provision.errors import ExternalError

Metadata = list[int]
"""Size in bytes, times of the last change of content and of metadata in ns, inode, mode."""
SIZE, _MODE = 0, 4
_FORMAT = 1
_SETTLED_NS = 2 * 10**9
"""A file that changed later than this before its reading is read again the next time: another
change may get the same timestamp (https://git-scm.com/docs/racy-git), which is exact to 2 s on FAT
(https://learn.microsoft.com/en-us/windows/win32/sysinfo/file-times)."""


class CodeDigests:
    """The digests of the files of one folder that need no attention, selected by one set of rules.

    Args:
        environment: the caller's variables.
        folder: the folder, without links in its path.
        rules: everything else that decides which files are selected.
        began_ns: the time from before the metadata of files is read.
    """

    def __init__(
        self, environment: Mapping[str, str], folder: Path, rules: Sequence[object], began_ns: int
    ) -> None:
        self._environment = environment
        self._header = {
            "format": _FORMAT,
            "version": __version__,
            "folder": str(folder),
            "rules": repr(rules),
        }
        key = hashlib.sha256(json.dumps(self._header).encode()).hexdigest()
        self._path = user_cache_folder(environment) / CODE_DIGESTS / key[:32] / "digests.json"
        self._settled_ns = began_ns - _SETTLED_NS
        self.rows = self._load()
        """Size, times, inode and mode of each file, and its digest, by path."""

    def _load(self) -> dict[str, list[Any]]:
        try:
            checksum, _, body = self._path.read_bytes().partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() != checksum:
                raise ValueError("the checksum does not match")
            document = json.loads(body)
            if document["header"] != self._header:
                raise ValueError("it belongs to another folder or version")
            rows: dict[str, list[Any]] = document["files"]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.info("ignore %s: %s", self._path, error)
            return {}
        mark_used(self._path.parent)
        return rows

    def find(self, path: str, metadata: Metadata) -> CodeFile | None:
        """Return a file as it was read before; None if it may have changed since."""
        row = self.rows.get(path)
        if row is None or row[:-1] != metadata:
            return None
        return CodeFile(path, to_git_mode(metadata[_MODE]), row[-1])

    def save(self, files: Iterable[CodeFile], metadata: Mapping[str, Metadata]) -> None:
        """Keep the digests of files, if some of them are new. A failure to write is ignored.

        Args:
            files: all files that were selected and need no attention.
            metadata: their metadata from before they were read.
        """
        rows: dict[str, list[Any]] = {}
        for file in files:
            size, *times, inode, mode = metadata[file.path]
            if stat.S_ISREG(mode) and max(times) < self._settled_ns:
                rows[file.path] = [size, *times, inode, mode, file.sha256]
        if all(self.rows.get(path) == row for path, row in rows.items()):
            return
        body = json.dumps({"header": self._header, "files": rows}).encode()
        checksum = hashlib.sha256(body).hexdigest().encode()
        try:
            make_folder(self._path.parent, 0o700)
            write(self._path, checksum + b"\n" + body, 0o600)
        except ExternalError as error:
            log.info("%s: %s", error.what, error.why)
            return
        if not self.rows:
            prune_cache(self._environment)


def read_metadata(folder: Path, paths: Iterable[str]) -> dict[str, Metadata]:
    """Return the metadata of each file or link below a folder that exists."""
    found: dict[str, Metadata] = {}
    base = f"{folder}{os.sep}"  # joining paths takes as long as the call of the system
    for path in paths:
        try:
            status = os.lstat(base + path)
        except (OSError, ValueError):
            continue
        times = (status.st_mtime_ns, status.st_ctime_ns)
        found[path] = [status.st_size, *times, status.st_ino, status.st_mode]
    return found
