"""Folders that hold the packages of an interpreter."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def find_package_folders(path: Sequence[str], environ_path: str, user_site: str) -> tuple[str, ...]:
    """Return the folders of an interpreter's own packages.

    Args:
        path: its sys.path; "" is the working folder.
        environ_path: PYTHONPATH, whose folders are left out.
        user_site: the user's site-packages, which are left out.
    """
    left_out = {os.path.realpath(folder) for folder in environ_path.split(os.pathsep) if folder}
    left_out |= {"", os.path.realpath(user_site)}
    folders = [os.path.realpath(entry) for entry in path if entry and os.path.isdir(entry)]
    return tuple(dict.fromkeys(folder for folder in folders if folder not in left_out))


def find_environment_package_folders(prefix: Path) -> tuple[str, ...]:
    """Return the folders of a virtual environment's packages."""
    return tuple(str(folder) for folder in sorted(prefix.glob("lib/python*/site-packages")))
