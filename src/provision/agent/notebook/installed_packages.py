"""Which packages lie in the folders of an interpreter, and whether their files have the sizes that
their RECORDs list.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.versions import normalize_name


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """An installed package: canonical name, version, its metadata folder, and a stamp that no
    second installation of it would have.
    """

    name: str
    version: str
    metadata_folder: str
    stamp: tuple[int, ...]

    @property
    def installed_ns(self) -> int:
        """When it was installed: the time at which its RECORD got its place on the disk."""
        return self.stamp[3] if self.stamp else 0


def find_installed_packages(entries: Iterable[str]) -> dict[str, InstalledPackage]:
    """Return the packages in these folders by name; where one is there twice, the one that Python
    would take.
    """
    found: dict[str, InstalledPackage] = {}
    for one in (one for entry in entries for one in _in_folder(entry)):
        found.setdefault(one.name, one)
    return found


def find_package_folders(path: Sequence[str], environ_path: str, user_site: str) -> tuple[str, ...]:
    """Return the folders of an interpreter's own packages: its sys.path without the working folder,
    PYTHONPATH and the user's site-packages.
    """
    foreign = {os.path.realpath(one) for one in environ_path.split(os.pathsep) if one} | {
        os.path.realpath(user_site)
    }
    return tuple(
        dict.fromkeys(
            real
            for entry in path
            if entry and os.path.isdir(entry) and (real := os.path.realpath(entry)) not in foreign
        )
    )


def find_environment_package_folders(prefix: Path) -> tuple[str, ...]:
    """Return the folders of a virtual environment's packages."""
    return tuple(str(one) for one in sorted(prefix.glob("lib/python*/site-packages")))


def read_recorded_files(dist: InstalledPackage) -> list[tuple[str, str]]:
    """Return the files that a package's RECORD lists with a hash: full path, and size as text.
    Empty when it cannot be read.
    """
    root = os.path.dirname(dist.metadata_folder)
    try:
        with open(
            os.path.join(dist.metadata_folder, "RECORD"), newline="", encoding="utf-8"
        ) as lines:
            return [
                (os.path.normpath(os.path.join(root, path)), size)
                for path, listed, size in csv.reader(lines)
                if listed
            ]
    except (OSError, ValueError, csv.Error):
        return []


def find_flaw(dist: InstalledPackage) -> str:
    """Return the first thing that is wrong with a package's files, by size; "" when all are as
    listed.
    """
    files = read_recorded_files(dist)
    if not files:
        return "its RECORD lists no file"
    for path, size in files:
        try:
            about = os.stat(path)
        except (OSError, ValueError):
            return f"{os.path.basename(path)} is missing"
        if not stat.S_ISREG(about.st_mode) or (size.isdecimal() and int(size) != about.st_size):
            return f"{os.path.basename(path)} has {about.st_size} bytes, not {size}"
    return ""


def _in_folder(entry: str) -> Iterator[InstalledPackage]:
    try:
        names = sorted(os.listdir(entry))
    except OSError:
        return
    for name in names:
        stem, dot, kind = name.rpartition(".")
        package, dash, version = stem.partition("-")
        if dot and dash and kind in ("dist-info", "egg-info"):
            path = os.path.join(entry, name)
            yield InstalledPackage(
                normalize_name(package),
                version if kind == "dist-info" else version.partition("-")[0],
                path,
                _stamp(path),
            )


def _stamp(metadata: str) -> tuple[int, ...]:
    # Installers write the RECORD anew and never link it from their cache: it lists their own files
    # too.
    for path in (os.path.join(metadata, "RECORD"), metadata):
        try:
            about = os.stat(path)
        except OSError:
            continue
        return about.st_ino, about.st_mtime_ns, about.st_size, about.st_ctime_ns
    return ()
