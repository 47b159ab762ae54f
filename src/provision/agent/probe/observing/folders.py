"""Looks at the folders that programs use without being told: the temporary one, the cache of
Hugging Face, the working folder; and at what is free on each.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from . import ObserverContext

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""In this order Python asks for a temporary folder (its tempfile)."""


def hf_cache(bench: ObserverContext) -> str:
    """The folder in which the libraries of Hugging Face keep what they downloaded."""
    told = bench.environ.get("HF_HOME") or os.path.join(
        bench.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    return os.path.expanduser(bench.environ.get("HF_HUB_CACHE") or told)


def working_folder() -> str | None:
    """Where this process was started; None where that folder is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def observe_folders(bench: ObserverContext) -> dict[str, Any]:
    """The state of each folder, as words, and which variable names the temporary one; the paths
    themselves stay here.
    """
    by = next((name for name in _TEMPORARY if bench.environ.get(name)), None)
    temporary, working = Path(bench.environ[by]) if by else bench.root / "tmp", working_folder()
    return {
        "folder.tmp": "absent"
        if describe_path(temporary) == "absent"
        else describe_writability(temporary),
        "folder.tmp_runs_programs": _runs_programs(temporary),
        "folder.hf_cache": describe_writability(Path(hf_cache(bench))),
        "folder.working": describe_writability(Path(working)) if working else "absent",
        "_folder.paths": {
            "tmp": f"{by}={temporary}" if by else str(temporary),
            "hf_cache": hf_cache(bench),
            "working": working or "the working folder",
        },
    }


def describe_writability(folder: Path) -> str:
    """Tell whether a file can be made there ("writable"), or in the nearest folder above, where it
    is not there yet ("can be made"); else why not.
    """
    there = next(
        (one for one in (folder, *folder.parents) if describe_path(one) != "absent"), folder
    )
    if (found := describe_path(there)) != "folder":
        return found
    try:
        with tempfile.TemporaryFile(dir=there):
            return "writable" if there == folder else "can be made"
    except OSError as error:
        return f"not writable: {error.strerror}"


def describe_path(path: Path) -> str:
    """Tell what is there: "folder", "not a folder" or "absent"; "not reachable: WHY" where the
    system does not let this user see it.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError as error:
        return f"not reachable: {error.strerror}"
    return "folder" if stat.S_ISDIR(found.st_mode) else "not a folder"


def _runs_programs(folder: Path) -> bool | None:
    """Whether what lies there may be run or loaded as code; None where the system does not tell."""
    try:
        return not os.statvfs(folder).f_flag & os.ST_NOEXEC
    except (OSError, AttributeError):
        return None


def is_read_only(path: Path) -> bool:
    """Whether the file system at a folder, or at the nearest one above that exists, is mounted
    read-only; False where the system does not tell.
    """
    told = _file_system(path)
    return bool(told and told.f_flag & getattr(os, "ST_RDONLY", 0))


def free_space(path: Path) -> tuple[int | None, int | None]:
    """Bytes that are free at a folder, or at the nearest one above that exists, and how many more
    files it can hold; None for what is not told.
    """
    told = _file_system(path)
    if told is None:
        return None, None
    # A file system without a table of files (btrfs, many network ones) tells none at all.
    return told.f_bavail * told.f_frsize, told.f_favail if told.f_files else None


def _file_system(path: Path) -> os.statvfs_result | None:
    for folder in (path, *path.parents):
        try:
            return os.statvfs(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None
