"""Files that a reader sees whole or not at all, and JSON objects in them."""

from __future__ import annotations

import json
import os
import tempfile
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
        durable: the content is on the disk before it replaces the old one. That takes some
            milliseconds, which a file that only has to outlive its process need not pay.
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
