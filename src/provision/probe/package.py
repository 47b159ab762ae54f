"""Where this probe's own code lies, and the digest that names it in reports."""

from __future__ import annotations

import hashlib
from pathlib import Path


def own_archive() -> Path | None:
    """The zip this package was imported from; None when it runs from a folder."""
    archive = getattr(__spec__.loader, "archive", None)
    return Path(archive) if archive else None


def own_digest() -> str:
    """sha256 of the zip, or of the files by relative name and content when it runs from a folder."""
    archive = own_archive()
    if archive is not None:
        return hashlib.sha256(archive.read_bytes()).hexdigest()
    total, root = hashlib.sha256(), Path(__file__).parents[1]
    for file in sorted([*(root / "agent").rglob("*.py"), *(root / "probe").rglob("*.py")]):
        total.update(f"{file.relative_to(root).as_posix()}\n".encode() + file.read_bytes())
    return total.hexdigest()
