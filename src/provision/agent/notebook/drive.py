"""Google Drive, mounted as a folder of the runtime. Source: googlecolab/colabtools, drive.py."""

from __future__ import annotations

import contextlib
import io
import os
from importlib import import_module

_MY_DRIVE = ("My Drive", "MyDrive")
"""Names of the folder with a user's files: drive.mount() looks for the first one."""


def is_mounted(mount: str) -> bool:
    """Return whether Drive is mounted at a folder."""
    return any(os.path.isdir(os.path.join(mount, name)) for name in _MY_DRIVE)


def is_below(path: str, mount: str | None) -> bool:
    """Return whether a path is on Drive; without a mount point none is."""
    return mount is not None and f"{path}/".startswith(f"{mount}/")


def mount_drive(mount: str) -> str:
    """Mount Drive, which asks the user for access; return why it is not mounted, or ""."""
    if is_mounted(mount):
        return ""
    try:
        drive = import_module("google.colab.drive")
    except ImportError:
        return "only Colab can mount Google Drive, and this is not Colab"
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            drive.mount(mount)
    except Exception as error:  # noqa: BLE001
        return _explain(error)
    return "" if is_mounted(mount) else "Google Drive was mounted without a folder for your files"


def _explain(error: Exception) -> str:
    kind, text = type(error).__name__, (str(error) or type(error).__name__).splitlines()[0]
    if kind == "MessageError":
        return (
            "this notebook did not get access to Google Drive: run the cell again, and allow it in "
            "the dialog that opens"
        )
    if isinstance(error, NotImplementedError):
        return "Google Drive cannot be mounted on this runtime"
    hint = "run the cell again"
    if "already contain files" in text:
        hint = "move these files to another folder, then run the cell again"
    return f"Google Drive was not mounted ({text[:200]}): {hint}"
