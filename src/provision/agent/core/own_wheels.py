"""Wheels of the project's packages, which travel to a device in one archive."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from .installed_packages import InstalledPackage
from .record_audit import read_record
from .versions import normalize_name

WHEELS = "wheels.zip"
"""The name of the archive on a device."""
OWN_INDEX = "source.own"
"""The index of these wheels in a request of the installer; no index of a spec has a dot."""
_DATA = re.compile(r"\A[^/]+\.data/(?:purelib|platlib)/")
_LEFT_OUT = re.compile(r"[^/]+\.data/|[^/]+\.dist-info/(?!METADATA|entry_points\.txt)|\.\.?/|/")


class WheelArchiveError(Exception):
    """An archive of wheels that cannot be used; the text is one line."""


def write_index(archive: Path, folder: Path) -> None:
    """Unpack the wheels of an archive into a new folder, which becomes a package index (PEP 503).

    Raises:
        WheelArchiveError: the archive is damaged.
        OSError: a file cannot be written.
    """
    for name, content in _read_wheels(archive).items():
        package = folder / _package_name(name)
        package.mkdir(parents=True, exist_ok=True)
        (package / name).write_bytes(content)
        write_page(package, name, hashlib.sha256(content).hexdigest())


def write_page(package: Path, name: str, sha256: str) -> None:
    """Write the page of a package with one file into its folder."""
    page = f'<!DOCTYPE html>\n<a href="{quote(name)}#sha256={sha256}">{name}</a>\n'
    (package / "index.html").write_text(page, encoding="utf-8")


def find_outdated_packages(
    archive: Path, installed: Mapping[str, InstalledPackage]
) -> tuple[str, ...]:
    """Return the installed packages whose files are not those of their wheel in an archive.

    An edit of a package keeps its version, so its files are compared. Raises WheelArchiveError.
    """
    outdated = []
    for name, content in _read_wheels(archive).items():
        package = installed.get(_package_name(name))
        if package is not None and _differs(package, _wheel_files(content)):
            outdated.append(package.name)
    return tuple(outdated)


def _read_wheels(archive: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(archive) as opened:
            wheels = {name: opened.read(name) for name in opened.namelist()}
    except (OSError, zipfile.BadZipFile) as error:
        raise WheelArchiveError(f"{archive} cannot be read: {error}") from None
    for name in wheels:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\.whl", name):
            raise WheelArchiveError(f"{archive} contains {name!r}, which is not a wheel")
    return wheels


def _package_name(wheel: str) -> str:
    return normalize_name(wheel.partition("-")[0])


def _wheel_files(content: bytes) -> dict[str, bytes]:
    """Return the files of a wheel by their paths in site-packages."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as wheel:
            paths = {name: _DATA.sub("", name) for name in wheel.namelist()}
            return {path: wheel.read(name) for name, path in paths.items() if _is_compared(path)}
    except zipfile.BadZipFile as error:
        raise WheelArchiveError(f"a wheel cannot be read: {error}") from None


def _differs(package: InstalledPackage, files: Mapping[str, bytes]) -> bool:
    root = Path(package.metadata_folder).parent
    # The RECORD names the files that an earlier wheel had and this one does not have.
    listed = (path for path, _, _ in read_record(package.metadata_folder).rows)
    if any(path not in files for path in listed if _is_compared(path)):
        return True
    for path, content in files.items():
        try:
            if (root / path).read_bytes() != content:
                return True
        except OSError:
            return True
    return False


def _is_compared(path: str) -> bool:
    """Return whether installers copy a file of a wheel as it is; they write some themselves."""
    return not (path.endswith(("/", ".pyc")) or _LEFT_OUT.match(path))
