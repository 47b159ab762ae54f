"""Binding of a state to the machine and folder in which it was written."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from pathlib import Path

from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.state import StateBinding

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
"""machine-id(5): the same as long as a system is installed, another in each."""
_LIMIT = 4096


def read_current_binding(folder: Path, reader: Reader) -> StateBinding:
    """Return the binding of a state that is written into a folder now."""
    about = folder.stat() if folder.exists() else None
    inode = f"{about.st_dev}:{about.st_ino}" if about is not None else ""
    return StateBinding(_machine(reader), os.path.realpath(folder), inode)


def explain_foreign_binding(bound: StateBinding, here: StateBinding) -> str:
    """Return why a state that is bound so was made elsewhere; "" when it was made here.

    On one machine a state belongs to its folder, even when that was moved or restored from a
    backup. Where no machine says which one it is (containers often
    do not), path and inode of the folder have to agree.
    """
    if bound.machine != here.machine:
        return f"it was written on another machine, in {bound.folder}"
    same = (bound.folder == here.folder, bound.inode == here.inode)
    if any(same) if here.machine else all(same):
        return ""
    return f"it was written in {bound.folder}, and this is {here.folder}"


def _machine(reader: Reader) -> str:
    """Return a digest of what identifies this machine; "" where nothing does."""
    for path in _MACHINE_IDS:
        try:
            text = reader.read(path, _LIMIT).decode("ascii", "replace").strip()
        except ExternalError:
            continue
        if len(text) == 32:
            return _digest(text.encode())
    return _digest(_hardware_uuid()) if sys.platform == "darwin" else ""


def _hardware_uuid() -> bytes:
    """Return what macOS calls the UUID of the host (gethostuuid(2)); b"" when it does not tell."""
    uuid, patience = ctypes.create_string_buffer(16), (ctypes.c_long * 2)(1, 0)
    try:
        failed = ctypes.CDLL(None).gethostuuid(uuid, patience)
    except (AttributeError, OSError):
        return b""
    return b"" if failed else uuid.raw


def _digest(identity: bytes) -> str:
    # Not the id itself: machine-id(5) asks that it is shown to nobody.
    return hashlib.sha256(b"provision:" + identity).hexdigest()[:32] if identity else ""
