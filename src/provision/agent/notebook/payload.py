"""What a cell carries: the files that it lays out, as one zip with the same bytes every time, and
whether those that lie there are still them.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

PAYLOAD_FILES = ("cell.pyz", "document.json", "installer.pyz", "probe.pyz")
FOLDER_DIGITS = 12
"""How many digits of the payload's sha256 name the folder that holds its files."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


class DamagedPayload(Exception):
    """The files that the cell laid out are not those of its payload; the text says which, or what
    is wrong.
    """


def pack_payload(members: Mapping[str, bytes]) -> bytes:
    """Return the members as a zip: sorted, uncompressed, of one fixed time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, members[name])
    return buffer.getvalue()


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
    digest = hashlib.sha256(pack_payload(members)).hexdigest()
    if folder.name != digest[:FOLDER_DIGITS]:
        raise DamagedPayload(
            f"the files in {folder} are not those that the cell laid out: together they "
            f"have the sha256 {digest[:FOLDER_DIGITS]}..."
        )
    return digest
