"""The modules next to a notebook, which its kernel imports first."""

from __future__ import annotations

from pathlib import Path

from provision.effects.system import Reader
from provision.errors import ProvisionError


def list_neighbors(notebook: Path, reader: Reader) -> frozenset[str] | None:
    """Return names of files and folders next to a notebook, in lower case, without suffixes.

    None if the notebook is not a file, or if its folder cannot be read.
    """
    try:
        if not reader.exists(notebook):
            return None
        names = reader.list_folder(notebook.parent)
    except ProvisionError:
        return None
    return frozenset(name.partition(".")[0].lower() for name in names)
