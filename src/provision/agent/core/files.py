"""Atomic file writes, JSON objects in files, reproducible zip files and digests of sources."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any


def write_atomically(
    path: Path, content: str | bytes, *, mode: int = 0o600, durable: bool = True
) -> None:
    """Write a file so that a reader sees the old content or the new one. Raises OSError.

    Args:
        path: the file; its folder exists.
        content: bytes, or text that is written as UTF-8; lone surrogates are escaped.
        mode: permissions of the file.
        durable: the content is on the disk before it replaces the old one, which takes some
            milliseconds. A file that only has to outlive its process does not need it.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            if durable:
                out.flush()
                os.fsync(out.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; {} if it cannot be read or is not an object."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def write_json_object(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON object for everybody to read. Raises OSError."""
    write_atomically(path, json.dumps(document, indent=1, sort_keys=True) + "\n", mode=0o644)


PROGRAMS = ("cell.pyz", "installer.pyz", "probe.pyz")
"""The programs in the payload of a cell, which are the same for every spec. They come first."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def zip_files(files: Mapping[str, bytes], *, first: Container[str] = ()) -> bytes:
    """Return a zip of these files by name: sorted, uncompressed, with one fixed time.

    The files in `first` precede the others.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files, key=lambda name: (name not in first, name)):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix, on every system
            # The output of deflate depends on the version of zlib, and these bytes are compared
            # between machines.
            entry.compress_type = zipfile.ZIP_STORED
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def digest_of_sources(files: Mapping[str, bytes]) -> str:
    """Return the sha256 (64 hexadecimal digits) of source files, by their names and contents.

    It is the same for a zip and for the folder that it was unpacked into.
    """
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\n{len(files[name])}\n".encode() + files[name])
    return total.hexdigest()
