"""Backups of packages before they change, which can be restored without an index."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from ..core.files import read_json_object, write_json_object
from ..core.installed_packages import InstalledPackage
from ..core.record_audit import read_record

BACKUP_FILE, BACKUP_FOLDER = "before.json", "before"
SCHEMA = "provision.before/1"
MAX_PACKAGE_BYTES = 256 * 2**20
"""Largest package that is copied. Our choice: torch and its libraries are larger, and copying them
would take seconds. On one disk files are linked and take no space.
"""


def back_up_packages(
    folder: Path, installed: Mapping[str, InstalledPackage], changing: Collection[str]
) -> list[str]:
    """Write all versions and copy the changing packages; return those too large to copy.

    A backup of an earlier run stays, because it has the original state. Raises OSError.
    """
    versions, copies = _read_backup(folder)
    if versions is None:
        versions = {name: package.version for name, package in sorted(installed.items())}
        copies = {}
        _write_backup(folder, versions, copies)
    too_large = []
    for name in sorted(changing):
        package = installed.get(name)
        if name in copies or package is None or versions.get(name) != package.version:
            continue
        files = _all_files(package)
        if sum(_size(path) for path in files) > MAX_PACKAGE_BYTES:
            too_large.append(name)
            continue
        copies[name] = _copy(folder / BACKUP_FOLDER / name, files)
        _write_backup(folder, versions, copies)
    return too_large


def read_versions_before(folder: Path) -> dict[str, str]:
    """Return the versions before this cell changed any package; {} without a backup."""
    return _read_backup(folder)[0] or {}


def restore_packages(
    folder: Path, installed: Mapping[str, InstalledPackage], locked: Iterable[str], root: str
) -> tuple[list[str], list[str]]:
    """Restore the packages of the lock; return those restored or removed, and the others.

    Nothing outside `root`, the interpreter's own folder, is removed. Raises OSError.
    """
    versions, copies = _read_backup(folder)
    done, left = [], []
    for name in sorted(locked):
        package, before = installed.get(name), (versions or {}).get(name)
        was_added = package is not None and versions and before is None
        if name in copies or was_added:
            if package is not None:
                _remove(package, root)
            _restore(folder / BACKUP_FOLDER / name, copies.get(name, {}))
            done.append(name)
        elif before is not None and (package is None or package.version != before):
            left.append(f"{name}=={before}")
    return done, left


def _read_backup(folder: Path) -> tuple[dict[str, str] | None, dict[str, dict[str, str]]]:
    """Return the versions before (None without a backup), and the copied files of packages."""
    document = read_json_object(folder / BACKUP_FILE)
    versions, copies = document.get("packages"), document.get("kept")
    if document.get("schema") != SCHEMA or not isinstance(versions, dict):
        return None, {}
    return versions, copies if isinstance(copies, dict) else {}


def _write_backup(
    folder: Path, versions: Mapping[str, str], copies: Mapping[str, Mapping[str, str]]
) -> None:
    document = {"schema": SCHEMA, "packages": versions, "kept": copies}
    write_json_object(folder / BACKUP_FILE, document)


def _all_files(package: InstalledPackage) -> list[str]:
    """Return a package's files and the rest of its metadata folder, without bytecode."""
    folder = package.metadata_folder
    files = [path for path, _, _ in read_record(folder).hashed_files]
    if os.path.isdir(folder):
        files += [os.path.join(folder, name) for name in os.listdir(folder)]
    return [path for path in dict.fromkeys(files) if os.path.isfile(path)]


def _copy(folder: Path, files: list[str]) -> dict[str, str]:
    """Link or copy files into a folder, and return their paths by the names there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    copies = {str(number): path for number, path in enumerate(files)}
    for name, path in copies.items():
        try:
            os.link(path, folder / name)
        except OSError:
            shutil.copy2(path, folder / name)
    return copies


def _restore(folder: Path, copies: Mapping[str, str]) -> None:
    for name, path in copies.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.provision"
        shutil.copy2(folder / name, temporary)
        os.replace(temporary, path)


def _remove(package: InstalledPackage, root: str) -> None:
    files = [path for path in _all_files(package) if path.startswith(root.rstrip(os.sep) + os.sep)]
    for path in files:
        with suppress(OSError):
            os.unlink(path)
    for folder in sorted({os.path.dirname(path) for path in files}, key=len, reverse=True):
        _remove_empty_folders(folder, os.path.dirname(package.metadata_folder))


def _remove_empty_folders(folder: str, top: str) -> None:
    """Remove a folder that contains nothing but bytecode, and those above it, up to `top`."""
    while folder.startswith(top + os.sep):
        with suppress(OSError):
            if set(os.listdir(folder)) <= {"__pycache__"}:
                shutil.rmtree(os.path.join(folder, "__pycache__"), ignore_errors=True)
                os.rmdir(folder)
        folder = os.path.dirname(folder)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
