"""Which packages an interpreter has, and whether the files of one are those that its RECORD lists."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from ..agent.core.versions import normal_name
from .document import Audit

_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Found:
    """An installed package: canonical name, version, its metadata folder, and a stamp that no second install of it would have."""

    name: str
    version: str
    metadata: str
    stamp: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Audited:
    """How many files were compared, and what is wrong: one short text a file, and these files in `altered`.

    `garbled`: the RECORD is there, and is no table of three columns.
    """

    files: int
    flaws: tuple[str, ...]
    garbled: bool = False
    altered: tuple[str, ...] = ()


def installed(entries: Iterable[str]) -> dict[str, Found]:
    """Return the packages in these folders by name; where one is there twice, the one that Python would take.

    A package is known by the name of its metadata folder, as installers know it: a folder without METADATA counts, and fails its audit.
    """
    found: dict[str, Found] = {}
    for one in (one for entry in entries for one in _in_folder(entry)):
        found.setdefault(one.name, one)
    return found


def audit(packages: Mapping[str, Found], how: Audit, among: Iterable[Found] = ()) -> dict[str, Audited]:
    """Compare every file that the packages' RECORDs list: with sha256 and size, or with its size only.

    A file that several packages bring has to fit the RECORD of one of them; `among` are those that lie there besides.

    A RECORD is a package's own list. That all is as it says tells that nothing was changed since the installation, not that what was installed is what a
    lock names. Lines without a hash (bytecode, the RECORD itself) are left out; a RECORD that is missing or lists nothing is a flaw.
    """
    if how is Audit.SIZE:
        found = {name: _audited(one, how) for name, one in packages.items()}
    else:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:  # hashing lets go of the interpreter
            found = dict(zip(packages, pool.map(lambda one: _audited(one, how), packages.values()), strict=True))
    altered = {path for one in found.values() for path in one.altered}
    others = _listed_by_others(altered, (*packages.values(), *among), how) if altered else set()
    return {name: _without(one, others) for name, one in found.items()}


def _listed_by_others(altered: set[str], packages: Iterable[Found], how: Audit) -> set[str]:
    """Return those of the files that fit a RECORD after all: two packages may bring one file, and the later one won."""
    fitting = set()
    for package in packages:
        root = os.path.dirname(package.metadata)
        with suppress(OSError, ValueError, csv.Error), open(os.path.join(package.metadata, "RECORD"), newline="", encoding="utf-8") as lines:
            for path, listed, size in csv.reader(lines):
                full = os.path.normpath(os.path.join(root, path))
                if listed and full in altered and not _flaw(full, listed, size, how):
                    fitting.add(full)
    return fitting


def _without(audited: Audited, fitting: set[str]) -> Audited:
    if not fitting.intersection(audited.altered):
        return audited
    kept = [(flaw, path) for flaw, path in zip(audited.flaws, audited.altered, strict=True) if path not in fitting]
    return replace(audited, flaws=tuple(flaw for flaw, _ in kept), altered=tuple(path for _, path in kept))


def _in_folder(entry: str) -> Iterator[Found]:
    try:
        names = sorted(os.listdir(entry))
    except OSError:
        return
    for name in names:
        stem, dot, kind = name.rpartition(".")
        package, dash, version = stem.partition("-")
        if dot and dash and kind in ("dist-info", "egg-info"):
            path = os.path.join(entry, name)
            yield Found(normal_name(package), version if kind == "dist-info" else version.partition("-")[0], path, _stamp(path))


def _stamp(metadata: str) -> tuple[int, ...]:
    """An installer writes the RECORD anew, never by a link to its cache: its own files are listed there too."""
    for path in (os.path.join(metadata, "RECORD"), metadata):
        try:
            about = os.stat(path)
        except OSError:
            continue
        return about.st_ino, about.st_mtime_ns, about.st_size
    return ()


def _audited(package: Found, how: Audit) -> Audited:
    root = os.path.dirname(package.metadata)
    files, flaws, altered = 0, [], []
    try:
        with open(os.path.join(package.metadata, "RECORD"), newline="", encoding="utf-8") as lines:
            for path, listed, size in csv.reader(lines):
                if listed:
                    files += 1
                    full = os.path.normpath(os.path.join(root, path))
                    if flaw := _flaw(full, listed, size, how):
                        flaws.append(f"{path} {flaw}")
                        altered.append(full)
    except OSError as error:
        return Audited(files, (f"its RECORD cannot be read: {error.strerror or error}",))
    except (ValueError, csv.Error):
        return Audited(files, ("its RECORD is garbled",), garbled=True)
    return Audited(files, tuple(flaws), altered=tuple(altered)) if files else Audited(files, ("its RECORD lists no file with a hash",))


def _flaw(path: str, listed: str, size: str, how: Audit) -> str:
    """Return what is wrong with a file, "" when it is as listed."""
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return "is missing"
    if not stat.S_ISREG(about.st_mode):
        return "is no file"
    if size.isdecimal() and int(size) != about.st_size:
        return f"has {about.st_size} bytes, not {size}"
    if how is Audit.SIZE:
        return ""
    algorithm, _, value = listed.partition("=")
    try:
        return "" if _hashed(path, algorithm) == value.rstrip("=") else "was changed"
    except (OSError, ValueError) as error:
        return f"cannot be checked: {getattr(error, 'strerror', None) or error}"


def _hashed(path: str, algorithm: str) -> str:
    total = hashlib.new(algorithm, usedforsecurity=False)
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
    return base64.urlsafe_b64encode(total.digest()).rstrip(b"=").decode("ascii")
