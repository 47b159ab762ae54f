"""Installed packages of an interpreter, and the audit of their files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from .record_audit import (
    InstallNote,
    compare_files,
    find_matching_files,
    read_record,
)
from .versions import is_same_version, normalize_name

INSTALL_RESULT_SCHEMA = "provision.installed/1"


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """An installed package; two installations of one version are not equal.

    Attributes:
        name: canonical name.
        version: version in the name of the metadata folder.
        metadata_folder: path of NAME.dist-info or NAME.egg-info.
        stamp: inode, time and size of its RECORD, which installers always write and never link
            from a cache, because it lists their own files too.
        installed_ns: time at which the RECORD was written; 0 if unknown.
    """

    name: str
    version: str
    metadata_folder: str
    stamp: tuple[int, ...]
    installed_ns: int = field(default=0, compare=False)


class Provenance(str, Enum):
    """Provenance of an installed package.

    preinstalled: that version was installed before, and matches its RECORD. hash-checked,
    reinstalled: this run installed it from a file with a locked sha256, the latter over another or
    damaged version.
    """

    HASH_CHECKED = "hash-checked"
    PREINSTALLED = "preinstalled"
    REINSTALLED = "reinstalled"


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Comparison of a package's files with its RECORD.

    Attributes:
        files: number of files compared.
        flaws: one short text for each file that differs, or for the RECORD.
        record_is_garbled: the RECORD exists but is not a table of three columns.
        altered_files: paths of the files that differ.
        note: what an installer notes of the package.
    """

    files: int
    flaws: tuple[str, ...]
    record_is_garbled: bool = False
    altered_files: tuple[str, ...] = ()
    note: InstallNote = InstallNote()  # noqa: RUF009 - it is frozen


def find_installed_packages(folders: Iterable[str]) -> dict[str, InstalledPackage]:
    """Return the packages in these folders by name; of two, the one that Python would import.

    A package is known by the name of its metadata folder, as installers know it: a folder without
    METADATA counts, and fails its audit.
    """
    packages: dict[str, InstalledPackage] = {}
    for folder in folders:
        for package in _packages_in(folder):
            packages.setdefault(package.name, package)
    return packages


def find_locked_packages(
    locked: Mapping[str, str], installed: Mapping[str, InstalledPackage]
) -> dict[str, InstalledPackage]:
    """Return the installed packages whose version is the locked one (version by name)."""
    return {
        name: installed[name]
        for name, version in locked.items()
        if name in installed and is_same_version(installed[name].version, version)
    }


def build_install_result(
    mode: str,
    audit: str,
    before: Mapping[str, InstalledPackage],
    after: Mapping[str, InstalledPackage],
    audits: Mapping[str, AuditResult],
    notes: list[str],
) -> dict[str, Any]:
    """Return the result document (`provision.installed/1`): version and provenance of packages.

    `before` are all packages from before, `after` the locked ones now, each with its audit.
    """
    packages = {
        name: {
            "version": package.version,
            "provenance": _provenance(before.get(name), package).value,
            "files_checked": audits[name].files,
            **({"record_fits": False} if audits[name].flaws else {}),
        }
        for name, package in sorted(after.items())
    }
    counts = Counter(package["provenance"] for package in packages.values())
    return {
        "schema": INSTALL_RESULT_SCHEMA,
        "mode": mode,
        "audit": audit,
        "counts": {kind.value: counts[kind.value] for kind in Provenance},
        "packages": packages,
        "notes": notes,
    }


def format_counts(counts: Mapping[str, int]) -> str:
    """Return numbers of packages by provenance as text, "" for none."""
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def _provenance(before: InstalledPackage | None, after: InstalledPackage) -> Provenance:
    if before == after:
        return Provenance.PREINSTALLED
    return Provenance.HASH_CHECKED if before is None else Provenance.REINSTALLED


def find_flaw(package: InstalledPackage) -> str:
    """Return the first difference of a package's files from its RECORD, by size; "" for none."""
    return next(iter(_audit(package, hashed=False).flaws), "")


def audit_packages(
    packages: Mapping[str, InstalledPackage],
    *,
    hashed: bool,
    among: Iterable[InstalledPackage] = (),
) -> dict[str, AuditResult]:
    """Compare every file that the RECORDs of packages list: by size, with `hashed` by sha256 too.

    A RECORD is a package's own list. If all files match it, nothing was changed since the
    installation, but the files need not be those of the lock. Lines without a
    hash (bytecode, the RECORD itself) are left out.

    Args:
        packages: the packages by name.
        hashed: read all files.
        among: other packages in the same folders. A file that several packages install must match
            the RECORD of one of them.
    """
    if hashed:
        # Hashing releases the interpreter's lock.
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            audits = list(pool.map(lambda package: _audit(package, hashed=True), packages.values()))
    else:
        audits = [_audit(package, hashed=False) for package in packages.values()]
    fitting = find_matching_files(
        {path for audit in audits for path in audit.altered_files},
        (read_record(package.metadata_folder) for package in (*packages.values(), *among)),
        hashed=hashed,
    )
    return {
        name: _without_files(audit, fitting) for name, audit in zip(packages, audits, strict=True)
    }


def _without_files(audit: AuditResult, fitting: frozenset[str]) -> AuditResult:
    if not audit.altered_files:
        return audit
    flaws = dict(zip(audit.altered_files, audit.flaws, strict=True))
    left = {path: flaw for path, flaw in flaws.items() if path not in fitting}
    return replace(audit, flaws=tuple(left.values()), altered_files=tuple(left))


def _packages_in(folder: str) -> Iterator[InstalledPackage]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        stem, dot, kind = name.rpartition(".")
        package, dash, version = stem.partition("-")
        if not dot or not dash or kind not in ("dist-info", "egg-info"):
            continue
        if kind == "egg-info":
            version = version.partition("-")[0]
        path = os.path.join(folder, name)
        yield InstalledPackage(normalize_name(package), version, path, *_stamp(path))


def _stamp(metadata_folder: str) -> tuple[tuple[int, ...], int]:
    for path in (os.path.join(metadata_folder, "RECORD"), metadata_folder):
        try:
            status = os.stat(path)
        except OSError:
            continue
        return (status.st_ino, status.st_mtime_ns, status.st_size), status.st_ctime_ns
    return (), 0


def _audit(package: InstalledPackage, *, hashed: bool) -> AuditResult:
    record = read_record(package.metadata_folder)
    comparison = compare_files(record, hashed=hashed)
    flaws = tuple(comparison.flaws.values())
    altered = () if record.flaw else tuple(comparison.flaws)
    note = InstallNote(record.sha256, comparison.snapshot)
    return AuditResult(comparison.files, flaws, record.garbled, altered, note)
