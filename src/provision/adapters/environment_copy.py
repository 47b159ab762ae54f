"""Copies unchanged packages of an earlier environment into a new one, mostly by hard links."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from provision.adapters.environment_damage import read_install_record
from provision.agent.core.installed_packages import (
    InstalledPackage,
    Provenance,
    find_installed_packages,
)
from provision.agent.core.record_audit import (
    InstallNote,
    RecordFile,
    read_record,
    stat_unchanged_files,
    take_snapshot,
)
from provision.agent.core.versions import is_same_version
from provision.agent.install.document import PackageToInstall


def copy_packages(
    earlier: Path, note: Path, environment: Path, minor: str, pins: Iterable[PackageToInstall]
) -> dict[str, dict[str, Any]]:
    """Copy the packages that both environments contain; the rest is left to the installer.

    A package is copied if it was installed from a file with one of the hashes that are locked now,
    and none of its files has changed since they were compared with their RECORD. Files that uv
    linked from its cache are linked here too; packages of which uv copied or cloned the files are
    not copied. What is built on this machine is not copied either: it depends on other packages.

    Args:
        earlier: the environment to copy from, in the same folder as the new one.
        note: its install record.
        environment: a new virtual environment.
        minor: the Python version of both.
        pins: the packages of the new environment.

    Returns:
        The entries of the copied packages for the install record of the new environment.
    """
    document = read_install_record(note)
    packages = document.get("packages")
    entries = packages if isinstance(packages, dict) else {}
    site = f"lib/python{minor}/site-packages"
    installed = find_installed_packages([str(earlier / site)])
    copied = dict[str, dict[str, Any]]()
    for pin in pins:
        package, entry = installed.get(pin.name), entries.get(pin.name)
        if package is None or not isinstance(entry, dict) or not _is_pinned(package, entry, pin):
            continue
        copy = _PackageCopy(earlier, environment, site, package)
        made = copy.perform(InstallNote.from_install_result(document, pin.name))
        if made is not None:
            copied[pin.name] = {**entry, **made.to_json()}
    return copied


def digest_hashes(pin: PackageToInstall) -> str:
    """Return what an install record keeps of the locked hashes of a package."""
    return hashlib.sha256("\n".join(sorted(pin.hashes)).encode()).hexdigest()


def with_locked_hashes(
    result: Mapping[str, Any], pins: Iterable[PackageToInstall]
) -> dict[str, Any]:
    """Return an install record with the locked hashes of what was installed from a locked file."""
    packages = dict(result["packages"])
    for pin in pins:
        if packages[pin.name]["provenance"] != Provenance.PREINSTALLED.value:
            packages[pin.name] = {**packages[pin.name], "locked": digest_hashes(pin)}
    return {**result, "packages": packages}


def with_copied_packages(
    result: Mapping[str, Any], copied: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the install record of an environment with the entries of its copied packages."""
    packages = {**result["packages"], **copied}
    counts = dict.fromkeys(result["counts"], 0)
    for entry in packages.values():
        counts[entry["provenance"]] += 1
    return {**result, "mode": "own", "packages": packages, "counts": counts}


def _is_pinned(package: InstalledPackage, entry: Mapping[str, Any], pin: PackageToInstall) -> bool:
    if pin.from_source or pin.editable:
        return False
    is_same_file = entry.get("locked") == digest_hashes(pin)
    return is_same_file and is_same_version(package.version, pin.version)


class _PackageCopy:
    """The copy of one package from `earlier` into `environment`."""

    def __init__(
        self, earlier: Path, environment: Path, site: str, package: InstalledPackage
    ) -> None:
        self._programs, self._environment = f"{earlier}/bin", str(environment)
        self._old_name, self._new_name = f"/{earlier.name}/", f"/{environment.name}/"
        self._old_site, self._new_site = f"{earlier}/{site}", f"{environment}/{site}"
        self._metadata = os.path.basename(package.metadata_folder)
        self._folders = set[str]()

    def perform(self, note: InstallNote) -> InstallNote | None:
        """Copy the package; return its new note, or None if it was not copied."""
        record = read_record(f"{self._old_site}/{self._metadata}")
        statuses = stat_unchanged_files(record, note)
        targets = self._find_targets(record, statuses)
        if targets is None:
            return None
        try:
            return self._copy(record, statuses, targets)
        except OSError:  # no more links to a file, a full disk: uv tries, and reports what is wrong
            shutil.rmtree(f"{self._new_site}/{self._metadata}", ignore_errors=True)
            return None

    def _find_targets(self, record: RecordFile, statuses: list[os.stat_result]) -> list[str] | None:
        """Return the new path of each file; None if a file has changed or must not be linked."""
        if not statuses:
            return None
        targets = []
        for (path, _, _), status in zip(record.hashed_rows, statuses, strict=True):
            target = f"{self._new_site}/{path}"
            is_outside = path.startswith(("../", "/"))
            if is_outside or "/../" in path:
                target = os.path.normpath(os.path.join(self._new_site, path))
                if not target.startswith(f"{self._environment}/"):
                    return None
            # uv writes programs and some metadata itself, and copies each RECORD. Any other file
            # with a single link is a copy: the cache is elsewhere, or UV_LINK_MODE demands it.
            is_written = is_outside or path.startswith(f"{self._metadata}/")
            is_written = is_written or path.endswith("/RECORD")
            if status.st_nlink == 1 and not is_written:
                return None
            targets.append(target)
        return targets

    def _copy(
        self, record: RecordFile, statuses: list[os.stat_result], targets: list[str]
    ) -> InstallNote:
        rows, copied, folder = list(record.hashed_rows), list(statuses), f"{self._old_site}/"
        for number, target in enumerate(targets):
            source, status = folder + rows[number][0], statuses[number]
            self._make_parent(target)
            if status.st_nlink > 1:
                _link(source, target)
                continue
            if content := self._rewrite(source):
                rows[number] = (rows[number][0], *_hash_and_size(content))
                _write_new(target, content, status.st_mode)
            else:
                shutil.copy2(source, target)
            copied[number] = os.stat(target)
        # Last: without a RECORD, the package is not installed.
        new_record = f"{self._new_site}/{self._metadata}/RECORD"
        if rows == record.hashed_rows:
            shutil.copyfile(f"{self._old_site}/{self._metadata}/RECORD", new_record)
            return InstallNote(record.sha256, take_snapshot(record, copied))
        content = _format_record(record, rows)
        _write_new(new_record, content, 0o644)
        return InstallNote(hashlib.sha256(content).hexdigest(), take_snapshot(record, copied))

    def _make_parent(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        if folder not in self._folders:
            os.makedirs(folder, exist_ok=True)
            self._folders.add(folder)

    def _rewrite(self, source: str) -> bytes:
        """Return a program with the path of the new environment; b"" if it names no environment."""
        if os.path.dirname(os.path.normpath(source)) != self._programs:
            return b""
        with open(source, "rb") as file:
            content = file.read()
        old = self._old_name.encode()
        return content.replace(old, self._new_name.encode()) if old in content else b""


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        # Several packages may install the same file.
        if not os.path.samefile(source, target):
            raise


def _write_new(path: str, content: bytes, mode: int) -> None:
    with open(path, "xb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode & 0o7777)


def _hash_and_size(content: bytes) -> tuple[str, str]:
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(len(content))


def _format_record(record: RecordFile, hashed_rows: Iterable[tuple[str, str, str]]) -> bytes:
    """Return the text of a RECORD with other hashes."""
    hashed = iter(hashed_rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(next(hashed) if row[1] else row for row in record.rows)
    return text.getvalue().encode()
