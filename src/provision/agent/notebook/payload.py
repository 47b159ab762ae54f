"""The files of a cell, and the digest that shows whether they are unchanged."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..core.zip_files import zip_files

PAYLOAD_FILES = ("cell.pyz", "document.json", "installer.pyz", "probe.pyz")
FOLDER_DIGITS = 12
"""Number of digits of the payload's sha256 in its folder's name."""


class DamagedPayload(Exception):
    """Files are not those of the cell's payload; the text names the file or the digest."""


def compute_payload_digest(folder: Path) -> str:
    """Return the payload's sha256, by which its folder is named. Raises DamagedPayload."""
    members: dict[str, bytes] = {}
    for name in PAYLOAD_FILES:
        try:
            members[name] = (folder / name).read_bytes()
        except OSError as error:
            raise DamagedPayload(
                f"{folder / name} cannot be read: {error.strerror or error}"
            ) from None
    digest = hashlib.sha256(zip_files(members)).hexdigest()
    if folder.name != digest[:FOLDER_DIGITS]:
        raise DamagedPayload(
            f"the files in {folder} are not those that the cell laid out: together they "
            f"have the sha256 {digest[:FOLDER_DIGITS]}..."
        )
    return digest
