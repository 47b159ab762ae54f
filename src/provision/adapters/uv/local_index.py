"""Package indexes (PEP 503) of local wheels, kept in the user's cache."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from provision.adapters import files
from provision.adapters.uv.sources import package_of_wheel
from provision.effects.packages import IndexSource


def index_url(source: IndexSource, environment: Mapping[str, str]) -> str:
    """Return the address of an index on this machine; local wheels are laid out as an index.

    Such an index keeps its address as long as its wheels do not change: uv identifies an
    unpacked wheel by the address of its index, and would hash and unpack a torch wheel again at
    every call for another address, and keep each in its cache.
    """
    if not source.wheels:
        return source.url
    identity = []
    for wheel in source.wheels:
        status = wheel.stat()
        identity.append([str(wheel.resolve()), status.st_ino, status.st_size, status.st_mtime_ns])
    name = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]
    return create_once(name, environment, lambda folder: _write_index(folder, source.wheels))


def create_once(name: str, environment: Mapping[str, str], write: Callable[[Path], None]) -> str:
    """Return the address of a cached index, which `write` creates in a new folder if missing."""
    folder = files.user_cache_folder(environment) / "stand-ins" / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as scratch:
            new_folder = Path(scratch) / "index"
            write(new_folder)
            with suppress(OSError):  # another process was first
                new_folder.rename(folder)
    return folder.as_uri()


def hash_file(path: Path) -> str:
    """Return the sha256 of a file (hexadecimal)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_index_page(folder: Path, wheels: list[Path]) -> None:
    """Write the page of a package in its folder, with the hash of each wheel."""
    links = [
        f'<a href="{quote(wheel.name)}#sha256={hash_file(wheel)}">{wheel.name}</a>'
        for wheel in wheels
    ]
    page = "<!DOCTYPE html>\n" + "\n".join(links) + "\n"
    (folder / "index.html").write_text(page, encoding="utf-8")


def _write_index(folder: Path, wheels: tuple[Path, ...]) -> None:
    by_package: dict[str, list[Path]] = {}
    for wheel in wheels:
        by_package.setdefault(package_of_wheel(wheel), []).append(wheel)
    for package, own in by_package.items():
        (folder / package).mkdir(parents=True)
        for file in own:
            (folder / package / file.name).symlink_to(file.resolve())
        write_index_page(folder / package, own)
