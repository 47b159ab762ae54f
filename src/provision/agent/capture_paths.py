"""Folders and modules of a capture: what hides installed modules, and where programs write.

Part of the program of `provision capture`, which is printed as one text with `capture.py`: its
names must not repeat there. Records no path.
"""

from __future__ import annotations

import contextlib
import locale
import os
import re
import shutil
import stat
import sys
import tempfile
from typing import Any

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
_COMMON_FOLDERS = {"test", "tests", "testing", "docs", "examples", "setup", "conftest"}
"""Modules that some packages install by accident, and that many projects have."""
_NETWORK = re.compile(
    r"nfs|cifs|smb|ceph|lustre|gpfs|beegfs|9p|afs|gluster|pvfs|fuse\.(sshfs|gluster|ceph)"
)


def read_folders(root: str) -> dict[str, Any]:
    """Return free space, writability and the kind of file system of folders that programs use."""
    value, home = os.environ.get, os.path.expanduser("~")
    cache = value("HF_HOME") or os.path.join(
        value("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "huggingface"
    )
    named = next((value(name) for name in _TEMPORARY if value(name)), None)
    content = os.path.join(root, "content")
    folders: dict[str, str | None] = {
        "working": os.getcwd(),
        "tmp": named or os.path.join(root, "tmp"),
        "hf_cache": os.path.expanduser(value("HF_HUB_CACHE") or cache),
        "home": home,
        "torch_home": os.path.expanduser(value("TORCH_HOME") or os.path.dirname(cache)),
        "content": content if os.path.isdir(content) else None,
    }
    mounts = _mounts(root)
    readings: dict[str, Any] = {}
    for name, folder in folders.items():
        kind = _kind_of(folder, mounts) if folder else None
        readings[f"folder.{name}"] = _writability(folder, kind or "") if folder else None
        readings[f"folder.{name}_on"] = kind
    space = {"environment": sys.prefix, **folders, "tmp": tempfile.gettempdir()}
    for name in ("environment", "tmp", "hf_cache", "working"):
        usage = shutil.disk_usage(_existing(str(space[name])))
        readings[f"disk.{name}.free_bytes"] = usage.free
    readings["user.home_writable"] = readings["folder.home"] == "writable"
    readings["locale.encoding"] = locale.getpreferredencoding(False).lower()
    return readings


def _existing(folder: str) -> str:
    folder = os.path.abspath(folder)
    while _state(folder) == "absent" and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return folder


def _state(folder: str) -> str:
    try:
        mode = os.stat(folder).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError as error:
        return f"not reachable: {error.strerror}"
    return "folder" if stat.S_ISDIR(mode) else "not a folder"


def _writability(folder: str, kind: str) -> str:
    existing = _existing(folder)
    is_there = existing == os.path.abspath(folder)
    if (state := _state(existing)) != "folder":
        return state
    # A file on a drive mount would be uploaded, and stay in the trash of the drive.
    if kind.startswith("drive mount"):
        allowed = os.access(existing, os.W_OK | os.X_OK)
        return "writable" if allowed else "not writable: Permission denied"
    try:
        with tempfile.TemporaryFile(dir=existing):
            return "writable" if is_there else "can be made"
    except OSError as error:
        return f"not writable: {error.strerror}"


def _mounts(root: str) -> list[tuple[str, str]]:
    """Return the mount points with the types of their file systems, later ones first."""
    mounts = []
    try:
        with open(
            os.path.join(root, "proc/self/mounts"), encoding="utf-8", errors="replace"
        ) as file:
            for line in file:
                _, point, kind, *_ = line.split(" ")
                octal = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)
                mounts.append((octal, kind))
    except (OSError, ValueError):
        pass
    return mounts[::-1]


def _kind_of(folder: str, mounts: list[tuple[str, str]]) -> str | None:
    """Return "local disk", "memory", "network file system" or "drive mount", with the type."""
    path = os.path.realpath(_existing(folder)).rstrip("/") + "/"
    matching = [mount for mount in mounts if path.startswith(mount[0].rstrip("/") + "/")]
    if not matching:
        return None
    kind = max(matching, key=lambda mount: len(mount[0]))[1]
    if _NETWORK.match(kind):
        return f"network file system ({kind[:20]})"
    if re.match(r"fuse(?!blk|.*overlay|\.lxcfs)", kind):
        return f"drive mount ({kind[:20]})"
    return "memory" if kind in ("tmpfs", "ramfs", "rootfs") else "local disk"


def find_shadowed() -> list[dict[str, str]]:
    """Return modules that are imported instead of installed ones or those of Python.

    Programs and notebooks search their own folder first, which is mostly the working folder.
    """
    working, listed = os.getcwd(), os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = list(dict.fromkeys([working, *search_path()]))
    sites = [folder for folder in folders if is_site(folder)]
    ahead = folders[: folders.index(sites[0])] if sites else folders[:1]
    installed = {name.partition(".")[0] for folder in sites for name in names_in(folder)}
    own = os.path.dirname(os.__file__)
    standard = {*sys.stdlib_module_names} - {*sys.builtin_module_names}
    shadowed = []
    for folder in ahead:
        if folder == own or folder.startswith(own + os.sep) or is_site(folder):
            continue
        is_first = folders.index(folder) < (folders.index(own) if own in folders else 1)
        hidden = (installed | standard if is_first else installed) - _COMMON_FOLDERS
        where = "PYTHONPATH" if folder in map(os.path.abspath, filter(None, listed)) else "sys.path"
        where = "the working folder" if folder == working else where
        for name in names_in(folder):
            module, _, end = name.partition(".")
            is_package = os.path.isfile(os.path.join(folder, name, "__init__.py"))
            is_file = end == "py" or (end.endswith(("so", "pyd")) and bool(end))
            if module in hidden and (is_file or (not end and is_package)):
                file = name if is_file else f"{name}/"
                shadowed.append({"module": module, "file": file, "folder": where})
    return shadowed[:50]


def search_path() -> list[str]:
    """Return the folders of sys.path, without a working folder that was deleted."""
    folders = []
    for entry in dict.fromkeys(sys.path):
        with contextlib.suppress(OSError):
            folders.append(os.path.abspath(entry))
    return folders


def is_site(folder: str) -> bool:
    """Return whether a folder is one that installers write to."""
    return os.path.basename(folder) in ("site-packages", "dist-packages")


def names_in(folder: str) -> list[str]:
    """Return the names of a folder; [] for one that cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
