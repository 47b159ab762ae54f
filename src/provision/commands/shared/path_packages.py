"""Packages at a path: folders with a pyproject.toml and wheel files, read without their code."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from provision.errors import LockError
from provision.lock import digest_of
from provision.lock.model import LockedFile
from provision.lock.package_metadata import (
    DynamicMetadataError,
    PackageMetadata,
    check_metadata,
    find_other_sources,
    parse_pyproject,
    parse_wheel_metadata,
)
from provision.spec import Package, Spec

if TYPE_CHECKING:
    from provision.effects.system import Reader

_MAX_WHEEL_BYTES = 2 * 2**30
_MAX_TEXT_BYTES = 2**20


class PathPackage(NamedTuple):
    """A folder or wheel file of a package as it is now.

    `metadata` is None if its own code has to run for it; `text` is its pyproject.toml.
    """

    path: Path
    relative: str
    digest: str
    metadata: PackageMetadata | None
    file: LockedFile | None = None
    text: str = ""


def find_origin_problems(
    spec: Spec, spec_path: Path, root: Path, reader: Reader
) -> Iterator[tuple[int, LockError]]:
    """Yield the number of each package whose path cannot be used, with the reason."""
    for number, line in enumerate(spec.packages):
        if line.path is None:
            continue
        try:
            found = read_path_package(line, spec_path, root, reader)
            if found.metadata is not None:
                check_source(line, found.metadata, found.text, found.relative, spec)
        except LockError as error:
            yield number, error


def read_path_package(line: Package, spec_path: Path, root: Path, reader: Reader) -> PathPackage:
    """Return a package at a path, without running its code.

    Raises:
        LockError: it is missing, outside of the project, or not a package.
    """
    written = line.path or ""
    home = spec_path.resolve().parent
    path = Path(os.path.normpath(home / written))
    real, project = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    if not path.is_relative_to(project):
        raise LockError(
            f"{written} is outside the project {project}",
            hint="move the package into the project, or set `git` to its repository",
        )
    if not real.is_relative_to(project):
        raise LockError(
            f"{written} is a link to {real}, outside the project",
            hint="copy the package into the project, or set `git` to its repository",
        )
    relative = path.relative_to(project).as_posix()
    if not reader.exists(path):
        kind = "file" if written.endswith(".whl") else "folder"
        raise LockError(
            f"the {kind} {written} does not exist",
            why=f"the resolved path is {path}",
            hint="correct the path, which is relative to the spec",
        )
    if written.endswith(".whl"):
        return _read_wheel(path, relative, reader)
    pyproject = path / "pyproject.toml"
    if not reader.exists(pyproject):
        if line.build is not True or not reader.exists(path / "setup.py"):
            raise LockError(
                f"the folder {written} has no pyproject.toml",
                hint="use the folder of a Python package, or add a pyproject.toml with a "
                "[project] table",
            )
        return PathPackage(path, relative, digest_of([""]), None)
    text = reader.read(pyproject, _MAX_TEXT_BYTES).decode("utf-8", "replace")
    metadata = read_static(line, text, f"{relative}/pyproject.toml".removeprefix("./"))
    digest = digest_of([text]) if metadata is None else metadata.digest
    return PathPackage(path, relative, digest, metadata, text=text)


def read_static(line: Package, text: str, where: str) -> PackageMetadata | None:
    """Return the metadata of a pyproject.toml; None if it is dynamic and may be built."""
    try:
        return parse_pyproject(text, where)
    except DynamicMetadataError:
        if line.build is True:
            return None
        raise


def _read_wheel(path: Path, relative: str, reader: Reader) -> PathPackage:
    content = reader.read(path, _MAX_WHEEL_BYTES)
    sha256 = hashlib.sha256(content).hexdigest()
    try:
        parse_wheel_filename(path.name)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            text = archive.read(name).decode("utf-8", "replace")
    except (InvalidWheelFilename, zipfile.BadZipFile, ValueError) as error:
        raise LockError(
            f"{relative} is not a wheel", why=str(error), hint="rebuild it with `uv build --wheel`"
        ) from None
    metadata = parse_wheel_metadata(text, relative)
    return PathPackage(path, relative, metadata.digest, metadata, LockedFile(path.name, sha256))


def check_source(
    line: Package, metadata: PackageMetadata, text: str, where: str, spec: Spec
) -> None:
    """Raise LockError for metadata that the spec cannot use."""
    listed = frozenset(package.key for package in spec.packages)
    check_metadata(metadata, where, line.key, spec.python, listed)
    others = find_other_sources(text) - listed
    required = {name for name in others if any(_names(line, name) for line in metadata.requires)}
    if required:
        name = min(required)
        raise LockError(
            f"[tool.uv.sources] in {line.key} takes {name} from a different source",
            why="provision would lock it from the package index instead",
            hint=f"also list {name} with its `path` or `git` under `packages`",
        )


def _names(requirement: str, name: str) -> bool:
    return canonicalize_name(Requirement(requirement).name) == name
