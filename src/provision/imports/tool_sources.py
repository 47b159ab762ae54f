"""Sources that uv and Poetry declare for a package, as the locations of requirements.

Keys: docs/concepts/projects/dependencies.md of astral-sh/uv, docs/dependency-specification.md of
python-poetry/poetry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provision.errors import LockError
from provision.imports.content import Content
from provision.imports.model import ImportContext
from provision.imports.package_sources import SourceLocation
from provision.imports.toml_text import TomlText, as_text, as_texts
from provision.lock.package_metadata import parse_project_name

_SCP_FORM = re.compile(r"([A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+):(?!//)(.+)")
_MAX_MEMBERS = 500
"""Folders of a workspace that are looked at. Our choice."""


def find_location(row: Mapping[str, Any], requirement: Requirement) -> SourceLocation | None:
    """Return the location that a source names: of `git`, `path`, `file` or `url`; else None."""
    if git := as_text(row.get("git")):
        return SourceLocation(_to_address(git, row), requirement)
    path = as_text(row.get("path")) or as_text(row.get("file"))
    if path:
        is_editable = row.get("editable") is True or row.get("develop") is True
        return SourceLocation(path, requirement, is_editable)
    if url := as_text(row.get("url")):
        return SourceLocation(url, requirement)
    return None


def find_workspace_member(
    toml: TomlText, name: str, folder: Path, content: Content, context: ImportContext
) -> str | None:
    """Return the path of the member of uv's workspace with a name; None if there is none.

    Only the members that this file lists are known.
    """
    workspace = toml.table("tool", "uv", "workspace")
    left_out = set(_expand(as_texts(workspace.get("exclude")), folder, content, context))
    for path in _expand(as_texts(workspace.get("members")), folder, content, context):
        text = content.read_near(f"{path}/pyproject.toml") if path not in left_out else None
        try:
            if text is not None and canonicalize_name(parse_project_name(text)) == name:
                return path
        except LockError:
            continue
    return None


def is_chosen(row: Mapping[str, Any], environment: str) -> bool:
    """Return whether a source is for the requirements of a group or extra ("": the main ones)."""
    condition = as_text(row.get("extra")) or as_text(row.get("group"))
    return not condition or canonicalize_name(condition) == canonicalize_name(environment)


def _to_address(git: str, row: Mapping[str, Any]) -> str:
    """Return the address of a repository as pip writes it."""
    match = _SCP_FORM.fullmatch(git)
    url = f"ssh://{match[1]}/{match[2].lstrip('/')}" if match else git
    revision = next(filter(None, (as_text(row.get(key)) for key in ("rev", "tag", "branch"))), "")
    folder = as_text(row.get("subdirectory"))
    address = f"git+{url}@{revision}" if revision else f"git+{url}"
    return f"{address}#subdirectory={folder}" if folder else address


def _expand(
    patterns: list[str], folder: Path, content: Content, context: ImportContext
) -> Iterator[str]:
    """Yield the folders that patterns of a workspace name; a star stands for names of one level."""
    for pattern in patterns:
        found = [PurePosixPath()]
        for part in PurePosixPath(pattern).parts:
            if "*" in part or "?" in part:
                found = _list_matching(found, part, folder, content, context)
            else:
                found = [path / part for path in found]
        yield from (str(path) for path in found if content.is_near(str(path)))


def _list_matching(
    paths: list[PurePosixPath], part: str, folder: Path, content: Content, context: ImportContext
) -> list[PurePosixPath]:
    """Return what is in some folders under a name that matches."""
    found: list[PurePosixPath] = []
    for path in paths:
        if content.is_near(str(path)):
            names = context.reader.list_folder(folder / path)
            found += (path / name for name in names if PurePosixPath(name).match(part))
    return found[:_MAX_MEMBERS]
