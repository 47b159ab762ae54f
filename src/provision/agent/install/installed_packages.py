"""Which packages an interpreter has, and whether the files of one are those that its RECORD lists."""  # noqa: E501

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ..core.installed_files import compare_files, find_matching_files, read_record
from ..core.versions import normalize_name
from .document import AuditLevel


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """An installed package: canonical name, version, its metadata folder, and a stamp that no
    second install of it would have.
    """

    name: str
    version: str
    metadata_folder: str
    stamp: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """How many files were compared, and what is wrong: one short text a file, and these files in
    `altered`.

    `garbled`: the RECORD is there, and is no table of three columns.
    """

    files: int
    flaws: tuple[str, ...]
    record_is_garbled: bool = False
    altered_files: tuple[str, ...] = ()


def find_installed_packages(entries: Iterable[str]) -> dict[str, InstalledPackage]:
    """Return the packages in these folders by name; where one is there twice, the one that Python
    would take.

    A package is known by the name of its metadata folder, as installers know it: a folder
    without METADATA counts, and fails its audit.
    """
    found: dict[str, InstalledPackage] = {}
    for one in (one for entry in entries for one in _in_folder(entry)):
        found.setdefault(one.name, one)
    return found


def audit_packages(
    packages: Mapping[str, InstalledPackage],
    how: AuditLevel,
    among: Iterable[InstalledPackage] = (),
) -> dict[str, AuditResult]:
    """Compare every file that the packages' RECORDs list: with sha256 and size, or with its size
    only.

    A file that several packages bring has to fit the RECORD of one of them; `among` are those
    that lie there besides.

    A RECORD is a package's own list. That all is as it says tells that nothing was changed since
    the installation, not that what was installed is what a
    lock names. Lines without a hash (bytecode, the RECORD itself) are left out; a RECORD that is
    missing or lists nothing is a flaw.
    """
    if how is AuditLevel.SIZE:
        found = {name: _audited(one, how) for name, one in packages.items()}
    else:
        with ThreadPoolExecutor(
            min(8, os.cpu_count() or 1)
        ) as pool:  # hashing lets go of the interpreter
            found = dict(
                zip(
                    packages,
                    pool.map(lambda one: _audited(one, how), packages.values()),
                    strict=True,
                )
            )
    altered = {path for one in found.values() for path in one.altered_files}
    others = find_matching_files(
        altered,
        (read_record(one.metadata_folder) for one in (*packages.values(), *among)),
        hashed=how is AuditLevel.FULL,
    )
    return {name: _without(one, others) for name, one in found.items()}


def _without(audited: AuditResult, fitting: frozenset[str]) -> AuditResult:
    if not fitting.intersection(audited.altered_files):
        return audited
    kept = [
        (flaw, path)
        for flaw, path in zip(audited.flaws, audited.altered_files, strict=True)
        if path not in fitting
    ]
    return replace(
        audited,
        flaws=tuple(flaw for flaw, _ in kept),
        altered_files=tuple(path for _, path in kept),
    )


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
    """An installer writes the RECORD anew, never by a link to its cache: its own files are listed
    there too.
    """
    for path in (os.path.join(metadata, "RECORD"), metadata):
        try:
            about = os.stat(path)
        except OSError:
            continue
        return about.st_ino, about.st_mtime_ns, about.st_size
    return ()


def _audited(package: InstalledPackage, how: AuditLevel) -> AuditResult:
    record = read_record(package.metadata_folder)
    found = compare_files(record, hashed=how is AuditLevel.FULL)
    flaws = () if record.flaw else tuple(found.flaws.values())
    return AuditResult(
        found.files,
        (record.flaw,) if record.flaw else flaws,
        record.garbled,
        tuple(found.flaws) if flaws else (),
    )
