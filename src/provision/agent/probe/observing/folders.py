"""Observes folders that programs use by default: temporary, Hugging Face cache, working folder."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from ..context import ObserverContext
from ..model import Environ, Readings

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""The variables of the temporary folder, in the order of Python's tempfile."""


def hf_home(environ: Environ) -> str:
    """Return the folder of the Hugging Face libraries, with their token and cache."""
    home = environ.get("HOME") or os.path.expanduser("~")
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return environ.get("HF_HOME") or os.path.join(cache, "huggingface")


def hf_cache(context: ObserverContext) -> str:
    """Return the folder in which the Hugging Face libraries keep downloaded files."""
    return os.path.expanduser(context.environ.get("HF_HUB_CACHE") or hf_home(context.environ))


def working_folder() -> str | None:
    """Return the working folder; None if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


def observe_folders(context: ObserverContext) -> Readings:
    """Return the state of each folder as words, and the variable that names the temporary one."""
    by = next((name for name in _TEMPORARY if context.environ.get(name)), None)
    temporary, working = Path(context.environ[by]) if by else context.root / "tmp", working_folder()
    return {
        "folder.tmp": "absent"
        if describe_path(temporary) == "absent"
        else describe_writability(temporary),
        "folder.tmp_runs_programs": _runs_programs(temporary),
        "folder.hf_cache": describe_writability(Path(hf_cache(context))),
        "folder.working": describe_writability(Path(working)) if working else "absent",
        "_folder.paths": {
            "tmp": f"{by}={temporary}" if by else str(temporary),
            "hf_cache": hf_cache(context),
            "working": working or "the working folder",
        },
    }


def describe_writability(folder: Path) -> str:
    """Return "writable", "can be made" (in the nearest existing folder), or why not."""
    existing = next(
        (parent for parent in (folder, *folder.parents) if describe_path(parent) != "absent"),
        folder,
    )
    if (state := describe_path(existing)) != "folder":
        return state
    try:
        with tempfile.TemporaryFile(dir=existing):
            return "writable" if existing == folder else "can be made"
    except OSError as error:
        return f"not writable: {error.strerror}"


def describe_path(path: Path) -> str:
    """Return "folder", "not a folder", "absent", or "not reachable: WHY"."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError as error:
        return f"not reachable: {error.strerror}"
    return "folder" if stat.S_ISDIR(status.st_mode) else "not a folder"


def _runs_programs(folder: Path) -> bool | None:
    """Return whether files there may be executed; None if unknown."""
    try:
        return not os.statvfs(folder).f_flag & os.ST_NOEXEC
    except (OSError, AttributeError):
        return None


def is_read_only(path: Path) -> bool:
    """Return whether the file system of a path is mounted read-only; False if unknown."""
    reported = _file_system(path)
    return bool(reported and reported.f_flag & getattr(os, "ST_RDONLY", 0))


def free_space(path: Path) -> tuple[int | None, int | None]:
    """Return free bytes and free inodes at a path or its nearest parent; None if unknown."""
    reported = _file_system(path)
    if reported is None:
        return None, None
    # A file system without a table of files (btrfs, many network ones) reports zero inodes.
    return reported.f_bavail * reported.f_frsize, reported.f_favail if reported.f_files else None


def _file_system(path: Path) -> os.statvfs_result | None:
    for folder in (path, *path.parents):
        try:
            return os.statvfs(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None
