"""Where this probe's own code lies, and the digest that names it in reports."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def own_program() -> Path | None:
    """Return what Python runs as this probe: its zip, or the folder that one was unpacked into;
    None when it runs as a part of provision.
    """
    if __name__.startswith("provision."):
        return None
    archive = getattr(__spec__.loader, "archive", None)
    folder = Path(__file__).parents[2]
    return Path(archive) if archive else folder if (folder / "__main__.py").exists() else None


def own_digest() -> str:
    """Return the digest of this probe's source files."""
    program = own_program()
    if program is not None and program.is_file():
        with zipfile.ZipFile(program) as archive:
            return digest_of_sources(
                {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}
            )
    root = program or Path(__file__).parents[1]
    files = (
        root.rglob("*.py")
        if program
        else [*(root / "core").rglob("*.py"), *(root / "probe").rglob("*.py")]
    )
    return digest_of_sources(
        {file.relative_to(root).as_posix(): file.read_bytes() for file in files}
    )


def digest_of_sources(files: Mapping[str, bytes]) -> str:
    """Return the sha256 of source files by their names and contents, as 64 hexadecimal digits: the
    same for a zip and for what it was unpacked into.
    """
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\n{len(files[name])}\n".encode() + files[name])
    return total.hexdigest()
