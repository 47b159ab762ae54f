"""Comparison of an installed package's files with its RECORD and the note of its installation."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_CHUNK = 2**20
_LONGEST_FLAW = 200
_VENV_FILES = {"_virtualenv.pth": b"import _virtualenv", "_virtualenv.py": None}
"""Files of virtual environments with their content (None: any). Source: virtualenv; uv up to 0.9.
"""

FileStatus = os.stat_result | OSError | ValueError
"""The status of a file, or why it has none."""

_AT_START = frozenset({"sitecustomize.py", "sitecustomize", "usercustomize.py", "usercustomize"})
"""Modules that Python's `site` imports at each start, next to the .pth files."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A package's own list of its files: path, hash and size as strings, and the list's sha256.

    `flaw` is why the list cannot be used, "" if it can; `garbled`: it exists but is not a table of
    three columns.
    """

    metadata_folder: str
    rows: tuple[tuple[str, str, str], ...]
    sha256: str = ""
    flaw: str = ""
    garbled: bool = False

    @property
    def hashed_rows(self) -> list[tuple[str, str, str]]:
        """The rows with a hash: all files but bytecode and the RECORD itself."""
        return [row for row in self.rows if row[1]]

    @property
    def hashed_files(self) -> list[tuple[str, str, str]]:
        """The rows with a hash, with the absolute and normal path of each file."""
        root = os.path.dirname(self.metadata_folder)
        return [
            (os.path.normpath(os.path.join(root, path)), digest, size)
            for path, digest, size in self.hashed_rows
        ]


@dataclass(frozen=True, slots=True)
class InstallNote:
    """Note of an installer about one package: sha256 of its RECORD, and a snapshot of its files.

    An empty value was not noted. `record_fits` is false for a package whose RECORD does not match
    the files of its wheel.
    """

    record_sha256: str = ""
    snapshot: str = ""
    record_fits: bool = True

    @classmethod
    def from_install_result(cls, note: object, name: str) -> InstallNote:
        """Return the note in a result (`provision.installed/1`); empty if it has none."""
        packages = note.get("packages") if isinstance(note, dict) else None
        entry = packages.get(name) if isinstance(packages, dict) else None
        if not isinstance(entry, dict):
            return cls()
        return cls(
            str(entry.get("record") or ""),
            str(entry.get("snapshot") or ""),
            entry.get("record_fits") is not False,
        )

    def to_json(self) -> dict[str, str]:
        """Return the entry of a result, without `record_fits`."""
        return {"record": self.record_sha256, "snapshot": self.snapshot}


@dataclass(frozen=True, slots=True)
class FileComparison:
    """Result of a comparison: files compared, files compared by sha256, and flaws by path.

    The path of a file that differs is absolute and normal. `unchanged`: size, mode and time of
    change of all files are as noted; `snapshot` is the digest of what they are.
    """

    files: int
    hashed: int
    flaws: dict[str, str]
    unchanged: bool = False
    snapshot: str = ""


def read_record(metadata: str) -> RecordFile:
    """Return the RECORD in a metadata folder.

    It has a flaw if it is missing, is not a table of three columns, or lists no file with a
    hash.
    """
    try:
        with open(os.path.join(metadata, "RECORD"), "rb") as file:
            content = file.read()
    except OSError as error:
        flaw = f"its RECORD cannot be read: {error.strerror or error}"
        return RecordFile(metadata, (), flaw=flaw)
    digest = hashlib.sha256(content).hexdigest()
    try:
        lines = io.StringIO(content.decode("utf-8"), newline="")
        rows = tuple((path, listed, size) for path, listed, size in csv.reader(lines))
    except (ValueError, csv.Error):
        return RecordFile(metadata, (), digest, "its RECORD is malformed", garbled=True)
    is_empty = not any(listed for _, listed, _ in rows)
    flaw = "its RECORD does not list any file with a hash" if is_empty else ""
    return RecordFile(metadata, rows, digest, flaw)


def make_install_note(record: RecordFile) -> InstallNote:
    """Return what is noted of a package that was just installed."""
    return InstallNote(record.sha256, take_snapshot(record, _stat_files(record)))


def stat_unchanged_files(record: RecordFile, note: InstallNote) -> list[os.stat_result]:
    """Return the status of each hashed file of an installed package; empty if one has changed.

    The files were compared by sha256 when the note was written.
    """
    is_noted = note.record_fits and note.record_sha256 == record.sha256
    if record.flaw or not is_noted:
        return []
    statuses = _stat_files(record)
    found = [status for status in statuses if isinstance(status, os.stat_result)]
    is_unchanged = len(found) == len(statuses) and note.snapshot == take_snapshot(record, found)
    return found if is_unchanged else []


def compare_files(
    record: RecordFile,
    noted: InstallNote | None = None,
    *,
    hashed: bool = False,
) -> FileComparison:
    """Compare the files of a RECORD with it: by size, with `hashed` by sha256 too.

    With the note of the installation, files whose size, mode and time of change are as noted count
    as unchanged; otherwise all files of the package are compared by sha256. An edit that keeps size
    and time is found with `hashed` only.
    """
    rows, record_path = record.hashed_rows, os.path.join(record.metadata_folder, "RECORD")
    # Each file is looked at once: there are thousands of files.
    statuses = _stat_files(record)
    snapshot = take_snapshot(record, statuses)
    if record.flaw:
        return FileComparison(0, 0, {record_path: record.flaw}, snapshot=snapshot)
    if noted is None or not noted.snapshot:
        flaws = _flaws(record, statuses, hashed=hashed)
        hashed_files = len(rows) if hashed else 0
        return FileComparison(len(rows), hashed_files, flaws, snapshot=snapshot)
    unchanged = noted.snapshot == snapshot
    by_hash = hashed or not unchanged
    skipped = unchanged and noted.record_fits and not hashed
    flaws = {} if skipped else _flaws(record, statuses, hashed=by_hash)
    if noted.record_sha256 != record.sha256:
        flaws[record_path] = "its RECORD was changed"
    return FileComparison(len(rows), len(rows) if by_hash else 0, flaws, unchanged, snapshot)


def _flaws(
    record: RecordFile,
    statuses: Iterable[FileStatus],
    *,
    hashed: bool,
) -> dict[str, str]:
    root, flaws = os.path.dirname(record.metadata_folder), {}
    for (path, digest, size), status in zip(record.hashed_rows, statuses, strict=True):
        file = os.path.join(root, path)
        if flaw := _flaw(file, status, digest, size, hashed=hashed):
            flaws[os.path.normpath(file)] = _readable(f"{path} {flaw}")
    return flaws


def find_matching_files(
    files: Collection[str], records: Iterable[RecordFile], *, hashed: bool
) -> frozenset[str]:
    """Return the files that match some RECORD.

    Packages with files of the same name (README.md, tests/__init__.py) overwrite each other's.
    """
    if not files:
        return frozenset()
    return frozenset(
        path
        for record in records
        for path, digest, size in record.hashed_files
        if path in files and not _flaw(path, _stat(path), digest, size, hashed=hashed)
    )


def find_unlisted_files(folder: str, records: Iterable[RecordFile]) -> tuple[list[str], list[str]]:
    """Return unlisted files at the top of site-packages: those read at starts, and others.

    Bytecode caches and folders without files are left out: the wheel of PyYAML 6.0.2 has an entry
    for an empty folder, PyYAML.libs, which its RECORD does not list.
    """
    known = {"__pycache__"}
    for record in records:
        known.add(os.path.basename(record.metadata_folder))
        known.update(path.removeprefix("./").partition("/")[0] for path, _, _ in record.rows)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return [], []
    started, others = list[str](), list[str]()
    for name in names:
        if not (name in known or _is_venv_file(folder, name) or _is_empty_folder(folder, name)):
            is_started = name.endswith(".pth") or name in _AT_START
            (started if is_started else others).append(_readable(name))
    return started, others


def _stat_files(record: RecordFile) -> list[FileStatus]:
    """Return the status of each hashed file; opens no file."""
    # Not os.path.join, which takes as long as the call of the system.
    root = os.path.dirname(record.metadata_folder) + os.sep
    return [
        _stat(path if path.startswith(os.sep) else root + path) for path, _, _ in record.hashed_rows
    ]


def _stat(path: str) -> FileStatus:
    try:
        return os.stat(path)
    except (OSError, ValueError) as error:
        return error


def take_snapshot(record: RecordFile, statuses: Iterable[FileStatus]) -> str:
    """Return a digest over path, size, mode and time (ns) of all hashed files."""
    lines = []
    for (path, _, _), about in zip(record.hashed_rows, statuses, strict=True):
        if isinstance(about, os.stat_result):
            lines.append(f"{path} {about.st_size} {about.st_mode} {about.st_mtime_ns}")
        else:
            lines.append(path)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _flaw(
    path: str,
    about: FileStatus,
    listed: str,
    size: str,
    *,
    hashed: bool,
) -> str:
    """Return how a file differs from its row, "" if it does not."""
    if isinstance(about, PermissionError):
        return "cannot be read: Permission denied"
    if not isinstance(about, os.stat_result):
        return "is missing"
    if not stat.S_ISREG(about.st_mode):
        return "is not a regular file"
    if size.isdecimal() and int(size) != about.st_size:
        return f"has {about.st_size} bytes, expected {size}"
    if not hashed:
        # World-readable files need no second call: there are thousands of files.
        return (
            ""
            if about.st_mode & stat.S_IROTH or os.access(path, os.R_OK)
            else "cannot be read: Permission denied"
        )
    algorithm, _, value = listed.partition("=")
    try:
        return "" if _digest(path, algorithm) == value.rstrip("=") else "was changed"
    except (OSError, ValueError, TypeError) as error:
        return f"cannot be checked: {getattr(error, 'strerror', None) or error}"


def _digest(path: str, algorithm: str) -> str:
    total = hashlib.new(algorithm, usedforsecurity=False)
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
    return base64.urlsafe_b64encode(total.digest()).rstrip(b"=").decode("ascii")


def _is_venv_file(folder: str, name: str) -> bool:
    if name not in _VENV_FILES:
        return False
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return _VENV_FILES[name] in (None, file.read(1000).strip())
    except OSError:
        return False


def _is_empty_folder(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    if os.path.islink(path) or not os.path.isdir(path):
        return False
    unreadable = list[OSError]()
    has_files = any(files for _, _, files in os.walk(path, onerror=unreadable.append))
    return not has_files and not unreadable


def _readable(text: str) -> str:
    """Return a name of any bytes as a short string that JSON can represent."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")[:_LONGEST_FLAW]
