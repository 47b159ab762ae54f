"""The probe's own program and sources, and the digest that names it in reports."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from ..core.files import digest_of_sources

CORE_MODULES = (
    "code_files",
    "files",
    "gpu_names",
    "json_fields",
    "nvidia_smi",
    "process",
    "record_audit",
    "redact",
    "shared_marks",
    "versions",
)
"""The modules of the agent's core that the probe imports: in its zipapp, and in its digest."""


def own_program() -> Path | None:
    """Return what Python runs as this probe: its zip, or the folder that it was unpacked into.

    None means that the probe runs as a part of provision.
    """
    if __name__.startswith("provision."):
        return None
    archive = getattr(__spec__.loader, "archive", None)
    if archive:
        return Path(archive)
    folder = Path(__file__).parents[2]
    return folder if (folder / "__main__.py").exists() else None


def own_command() -> list[str]:
    """Return the arguments with which an interpreter starts this probe."""
    program = own_program()
    return [os.path.abspath(program)] if program else ["-m", str(__package__)]


def own_digest() -> str:
    """Return the digest of this probe's source files."""
    program = own_program()
    if program is not None and program.is_file():
        with zipfile.ZipFile(program) as archive:
            names = [name for name in archive.namelist() if name.endswith(".py")]
            return digest_of_sources({name: archive.read(name) for name in names})
    root = program or Path(__file__).parents[1]
    files = list(root.rglob("*.py"))
    if program is None:
        files = [
            *[root / "core" / f"{name}.py" for name in ("__init__", *CORE_MODULES)],
            *(root / "probe").rglob("*.py"),
        ]
    return digest_of_sources(
        {file.relative_to(root).as_posix(): file.read_bytes() for file in files}
    )
