"""Zip files with the same bytes on every machine."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_EPOCH = (1980, 1, 1, 0, 0, 0)


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of these files by name: sorted, uncompressed, with one fixed time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix, on whatever system it is made
            # What deflate makes depends on the zlib in use, and these bytes are compared between
            # machines.
            entry.compress_type = zipfile.ZIP_STORED
            archive.writestr(entry, files[name])
    return buffer.getvalue()
