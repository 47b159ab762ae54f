"""Finds the root of a project, and refuses links that leave it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from provision.errors import SourceError

if TYPE_CHECKING:
    from provision.effects.system import Reader

ROOT_MARKERS = ("provision.toml", "pyproject.toml", ".git")


def find_project_root(path: Path, reader: Reader) -> Path:
    """Return the nearest folder above a spec that marks a project, or the spec's own folder.

    The search follows the path as it is written: a link inside a project does not lead to another
    project. The result has its links resolved.
    """
    written, real = Path(os.path.abspath(path)).parent, resolve_path(path.parent)  # noqa: PTH100
    for folder in (written, real):
        for candidate in (folder, *folder.parents):
            if _is_project_root(candidate, reader):
                return candidate.resolve()
    return real


def refuse_link(path: Path, root: Path, reader: Reader, folder: Path | None = None) -> None:
    """Refuse a link that leaves the project or leads to a hidden file in it.

    Outside a project, a link may lead to a *.yaml or *.yml file anywhere. `folder` is that of the
    path with its links resolved; None to resolve them.

    Raises:
        SourceError: the link may not be followed.
    """
    inside = (folder or resolve_path(path.parent)) / path.name
    real = resolve_path(path) if inside.is_symlink() else inside
    if real == inside and real.is_relative_to(root):
        return
    if not real.is_relative_to(root) and (
        _is_project_root(root, reader) or real.suffix not in {".yaml", ".yml"}
    ):
        hint = f"move the file below {root}, or use the path of the file itself"
        raise SourceError(
            f"{path} is outside the project", why=f"the link points to {real}", hint=hint
        )
    if real.is_relative_to(root) and any(
        part.startswith(".") for part in real.relative_to(root).parts
    ):
        raise SourceError(
            f"{path} is a link to a hidden file",
            why=f"the link points to {real}; hidden files are not read",
            hint="replace the link with a copy of the file",
        )


def resolve_path(path: Path) -> Path:
    """Return a path with links resolved as far as they lead; a loop of links stays as it is."""
    return Path(os.path.realpath(path))


def _is_project_root(folder: Path, reader: Reader) -> bool:
    return any(reader.exists(folder / mark) for mark in ROOT_MARKERS)
