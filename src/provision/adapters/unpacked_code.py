"""Removes code that was unpacked on this machine, but nothing that people added to it."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from provision.agent.core.code_files import (
    MANIFEST,
    TREE,
    CodeError,
    CodeManifest,
    find_changed_files,
)


def remove_code(parent: Path) -> bool:
    """Remove the unmodified files of all code that was unpacked below a folder.

    Returns whether other files are left, such as results and edited files. Raises OSError.
    """
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        try:
            manifest = CodeManifest.from_json(json.loads((folder / MANIFEST).read_bytes()))
        except (OSError, ValueError, CodeError):
            continue
        edited = set(find_changed_files(folder / TREE, manifest)[1])
        own = os.path.realpath(folder) + os.sep
        for file in manifest.files:
            path = folder / TREE / file.path
            # Links and edited lists must not lead elsewhere.
            if file.path not in edited and os.path.realpath(path.parent).startswith(own):
                path.unlink()
        _remove_empty_folders(folder / TREE)
        if [path.name for path in folder.iterdir()] == [MANIFEST]:
            shutil.rmtree(folder)
    with suppress(OSError):
        parent.rmdir()
    return parent.exists()


def _remove_empty_folders(tree: Path) -> None:
    """Remove the folders that have nothing but what Python compiled."""
    for current, folders, _ in os.walk(tree, topdown=False):
        path = Path(current)
        if "__pycache__" in folders:
            shutil.rmtree(path / "__pycache__", ignore_errors=True)
        with suppress(OSError):  # something is left in it
            path.rmdir()
