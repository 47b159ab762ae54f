"""Folders of Google Drive as `paths` name them (`drive:/data`), and where Colab mounts them."""

from __future__ import annotations

import re
from collections.abc import Mapping

DRIVE_PREFIX = "drive:"
DRIVE_MOUNT = "/content/drive"
"""The mount point in Colab's own examples of drive.mount() (colab.research.google.com/notebooks/
io.ipynb), which needs a folder in an existing one (googlecolab/colabtools, google/colab/drive.py).
"""
MY_DRIVE = f"{DRIVE_MOUNT}/MyDrive"
_FOLDER = re.compile(r"drive:(/(?!/|\.\.(/|$))[^\r\n\0/]*)+")


def is_on_drive(path: str) -> bool:
    """Return whether a declared path names a folder of Drive, correctly or not."""
    return path.startswith(DRIVE_PREFIX)


def is_drive_folder(path: str) -> bool:
    """Return whether a declared path is a folder of Drive as the language writes it."""
    return _FOLDER.fullmatch(path) is not None


def to_mounted_paths(paths: Mapping[str, str]) -> dict[str, str]:
    """Return declared paths with folders of Drive as a runtime that has mounted it names them."""
    return {name: _to_mounted_path(path) for name, path in paths.items()}


def find_mount(paths: Mapping[str, str]) -> str | None:
    """Return where Drive has to be mounted for declared paths; None if none of them is on it."""
    mounted = to_mounted_paths(paths).values()
    return (
        DRIVE_MOUNT if any(f"{path}/".startswith(f"{DRIVE_MOUNT}/") for path in mounted) else None
    )


def _to_mounted_path(path: str) -> str:
    if not is_on_drive(path):
        return path
    return f"{MY_DRIVE}/{path.removeprefix(DRIVE_PREFIX).strip('/')}".rstrip("/")
