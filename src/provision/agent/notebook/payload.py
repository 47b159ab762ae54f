"""What a cell carries: the files that it lays out, as one zip with the same bytes every time, and
whether those that lie there are still them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..core.zip_files import zip_files

PAYLOAD_FILES = ("cell.pyz", "document.json", "installer.pyz", "probe.pyz")
FOLDER_DIGITS = 12
"""How many digits of the payload's sha256 name the folder that holds its files."""


class DamagedPayload(Exception):
    """The files that the cell laid out are not those of its payload; the text says which, or what
    is wrong.
    """


def compute_payload_digest(folder: Path) -> str:
    """Return the sha256 (hexadecimal) of the payload whose members lie in a folder named after it.
    Raises Damaged.
    """
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
