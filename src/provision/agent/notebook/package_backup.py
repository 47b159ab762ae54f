"""Backups of the packages that are about to change, which can be restored without an index."""

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
"""Of one package. Own choice: torch and its libraries are larger, and copying them would cost
seconds. On one disk files are linked and take no space.
"""


def back_up_packages(
    folder: Path, there: Mapping[str, InstalledPackage], work: Collection[str]
) -> list[str]:
    """Note all versions and copy the packages in `work`; return those too large to copy.

    What an earlier run of this cell kept stays: that was the state before. Raises OSError.
    """
    before = read_json_object(folder / BACKUP_FILE)
    packages = before.get("packages") if before.get("schema") == SCHEMA else None
    if not isinstance(packages, dict):
        packages = {name: dist.version for name, dist in sorted(there.items())}
        write_json_object(
            folder / BACKUP_FILE, {"schema": SCHEMA, "packages": packages, "kept": {}}
        )
    kept = dict(read_json_object(folder / BACKUP_FILE).get("kept", {}))
    left = []
    for name in sorted(work):
        if name in kept or name not in there or packages.get(name) != there[name].version:
            continue
        files = _all_files(there[name])
        if sum(_size(path) for path in files) > MAX_PACKAGE_BYTES:
            left.append(name)
            continue
        kept[name] = _keep(folder / BACKUP_FOLDER / name, files)
        write_json_object(
            folder / BACKUP_FILE, {"schema": SCHEMA, "packages": packages, "kept": kept}
        )
    return left


def read_versions_before(folder: Path) -> dict[str, str]:
    """Return the packages as they were before this cell changed any; {} where it did not yet."""
    packages = read_json_object(folder / BACKUP_FILE).get("packages")
    return (
        {str(name): str(version) for name, version in packages.items()}
        if isinstance(packages, dict)
        else {}
    )


def restore_packages(
    folder: Path, there: Mapping[str, InstalledPackage], wanted: Iterable[str], root: str
) -> tuple[list[str], list[str]]:
    """Restore the packages of the lock; return those restored or removed, and the others.

    Nothing outside `root`, the interpreter's own folder, is removed. Raises OSError.
    """
    document = read_json_object(folder / BACKUP_FILE)
    packages, kept = read_versions_before(folder), document.get("kept", {})
    done, left = [], []
    for name in sorted(wanted):
        dist, files = there.get(name), kept.get(name)
        if isinstance(files, dict):
            if dist is not None:
                _remove(dist, root)
            _restore(folder / BACKUP_FOLDER / name, files)
            done.append(name)
        elif dist is not None and packages and name not in packages:
            _remove(dist, root)
            done.append(name)
        elif name in packages and (dist is None or dist.version != packages[name]):
            left.append(f"{name}=={packages[name]}")
    return done, left


def _all_files(dist: InstalledPackage) -> list[str]:
    """Return a package's files and the rest of its metadata folder, without bytecode."""
    listed = [path for path, _, _ in read_record(dist.metadata_folder).hashed_files]
    metadata = (
        [os.path.join(dist.metadata_folder, name) for name in os.listdir(dist.metadata_folder)]
        if os.path.isdir(dist.metadata_folder)
        else []
    )
    return [path for path in dict.fromkeys([*listed, *metadata]) if os.path.isfile(path)]


def _keep(folder: Path, files: list[str]) -> dict[str, str]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for place, path in enumerate(files):
        try:
            os.link(path, folder / str(place))
        except OSError:
            shutil.copy2(path, folder / str(place))
    return {str(place): path for place, path in enumerate(files)}


def _restore(folder: Path, files: Mapping[str, str]) -> None:
    for place, path in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.provision"
        shutil.copy2(folder / place, temporary)
        os.replace(temporary, path)


def _remove(dist: InstalledPackage, root: str) -> None:
    folders = set()
    for path in _all_files(dist):
        if path.startswith(root.rstrip(os.sep) + os.sep):
            with suppress(OSError):
                os.unlink(path)
            folders.add(os.path.dirname(path))
    for one in sorted(folders, key=len, reverse=True):
        _tidy(one, os.path.dirname(dist.metadata_folder))


def _tidy(folder: str, top: str) -> None:
    """Remove a folder that holds nothing but bytecode, and those above it, up to `top`."""
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
