"""Loads a spec whose file has a text that is not written yet, and writes it with its lock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from provision.commands.shared.load import LoadedSpec, load_spec
from provision.effects.local import RemoveTree, WriteFile
from provision.errors import Refused

if TYPE_CHECKING:
    from provision.effects.system import ProgressCallback, Reader, System

_MAX_FILE_BYTES = 256 * 2**20


class _EditedReader:
    """A reader in which one file has another content."""

    def __init__(self, reader: Reader, path: Path, content: bytes) -> None:
        self._reader, self._path, self._content = reader, path, content

    def read(self, path: Path, limit: int) -> bytes:
        """Return the new content of the file, or that of another one."""
        return self._content if path == self._path else self._reader.read(path, limit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


def load_edited_spec(path: Path, text: str, reader: Reader) -> LoadedSpec:
    """Return the spec at `path` as if its file contained `text`; errors as in `load_spec`."""
    edited = cast("Reader", _EditedReader(reader, path, text.encode()))
    return load_spec(path, edited)._replace(is_edited=True)


def write_together(
    files: Mapping[Path, str],
    expected: Mapping[Path, bytes],
    system: System,
    progress: ProgressCallback,
) -> None:
    """Write all files or none: an error at one restores those before it.

    Args:
        files: the new texts, in the order in which they are written.
        expected: the content that a file must still have.
        system: writes.
        progress: called with each line for people.

    Raises:
        Refused: a file of `expected` was changed meanwhile.
        ExternalError: a file cannot be written.
    """
    for path, content in expected.items():
        if system.read(path, _MAX_FILE_BYTES) != content:
            raise Refused(
                f"{path} changed while the packages were being locked; nothing was written",
                hint="run the command again",
            )
    before: dict[Path, bytes | None] = {}
    try:
        for path, text in files.items():
            exists = system.exists(path)
            before[path] = system.read(path, _MAX_FILE_BYTES) if exists else None
            system.perform(WriteFile(path, text, mode=None if exists else 0o644), progress)
    except BaseException:
        for path, old in before.items():
            restore = RemoveTree(path) if old is None else WriteFile(path, old, mode=None)
            system.perform(restore, progress)
        raise
