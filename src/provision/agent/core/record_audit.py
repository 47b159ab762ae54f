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
_OF_VENVS = {"_virtualenv.pth": b"import _virtualenv", "_virtualenv.py": None}
"""What makers of virtual environments put there themselves, and what it has to say (None:
anything). Source: virtualenv; uv up to 0.9.
"""

_AT_START = frozenset({"sitecustomize.py", "sitecustomize", "usercustomize.py", "usercustomize"})
"""Modules that Python's `site` imports at each start, next to the .pth files."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A package's own list of its files: path, hash and size as strings, and the list's sha256.

    `flaw` says why the list cannot be used ("": it can), `garbled` that it is there and is not
    a table of three columns.
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

    "" stands for what was not noted.

    `fits` is false for a package whose RECORD does not fit the files of its own wheel.
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

    Of a file that differs the path is absolute, and normal. `unchanged`: size, mode and time of
    change of all of them are as noted.
    """

    files: int
    hashed: int
    flaws: dict[str, str]
    unchanged: bool = False


def read_record(metadata: str) -> RecordFile:
    """Return the RECORD in a metadata folder.

    It has a flaw if it is missing, is not a table of three columns, or lists no file with a
    hash.
    """
    try:
        with open(os.path.join(metadata, "RECORD"), "rb") as file:
            content = file.read()
    except OSError as error:
        return RecordFile(
            metadata, (), flaw=f"its RECORD cannot be read: {error.strerror or error}"
        )
    digest = hashlib.sha256(content).hexdigest()
    try:
        rows = tuple(
            (path, listed, size)
            for path, listed, size in csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
        )
    except (ValueError, csv.Error):
        return RecordFile(metadata, (), digest, "its RECORD is garbled", garbled=True)
    return RecordFile(
        metadata,
        rows,
        digest,
        "" if any(listed for _, listed, _ in rows) else "its RECORD lists no file with a hash",
    )


def make_install_note(record: RecordFile) -> InstallNote:
    """Return what is noted of a package that was just installed."""
    return InstallNote(record.sha256, _snapshot(record))


def compare_files(
    record: RecordFile, noted: InstallNote | None = None, *, hashed: bool = False
) -> FileComparison:
    """Compare the files of a RECORD with it: by size, with `hashed` by sha256 too.

    With the note of the installation it takes one look at each file: where size, mode and time
    of change are as noted, nothing was changed since. Where they are not, the package's files
    are compared by sha256. An edit that keeps size and time is seen with `hashed` only.
    """
    if record.flaw:
        return FileComparison(0, 0, {os.path.join(record.metadata_folder, "RECORD"): record.flaw})
    known = noted if noted is not None and noted.snapshot else None
    unchanged = known is not None and known.snapshot == _snapshot(record)
    by_hash = hashed or (known is not None and not unchanged)
    rows = record.hashed_rows
    found = (
        {}
        if unchanged and known is not None and known.record_fits and not hashed
        else _flaws(record, hashed=by_hash)
    )
    if known is not None and known.record_sha256 != record.sha256:
        found[os.path.join(record.metadata_folder, "RECORD")] = "its RECORD was changed"
    return FileComparison(len(rows), len(rows) if by_hash else 0, found, unchanged)


def _flaws(record: RecordFile, *, hashed: bool) -> dict[str, str]:
    root = os.path.dirname(record.metadata_folder)
    flaws = [
        (path, _flaw(os.path.join(root, path), digest, size, hashed=hashed))
        for path, digest, size in record.hashed_rows
    ]
    return {
        os.path.normpath(os.path.join(root, path)): _readable(f"{path} {flaw}")
        for path, flaw in flaws
        if flaw
    }


def find_matching_files(
    files: Collection[str], records: Iterable[RecordFile], *, hashed: bool
) -> frozenset[str]:
    """Return the files that fit some RECORD.

    Packages that bring files of one name (README.md, tests/__init__.py) overwrite each other's.
    """
    if not files:
        return frozenset()
    return frozenset(
        path
        for record in records
        for path, digest, size in record.hashed_files
        if path in files and not _flaw(path, digest, size, hashed=hashed)
    )


def find_unlisted_files(folder: str, records: Iterable[RecordFile]) -> tuple[list[str], list[str]]:
    """Return unlisted files at the top of site-packages: those read at starts, and others.

    Bytecode caches are left out.
    """
    known = {"__pycache__"}
    for record in records:
        known.add(os.path.basename(record.metadata_folder))
        known.update(path.removeprefix("./").partition("/")[0] for path, _, _ in record.rows)
    try:
        names = sorted(
            name
            for name in os.listdir(folder)
            if name not in known and not _is_of_venv(folder, name)
        )
    except OSError:
        return [], []
    started = [name for name in names if name.endswith(".pth") or name in _AT_START]
    return [_readable(name) for name in started], [
        _readable(name) for name in names if name not in started
    ]


def _snapshot(record: RecordFile) -> str:
    """Return a digest over path, size, mode and time (ns) of all hashed files; opens no file."""
    root, lines = os.path.dirname(record.metadata_folder), []
    for path, _, _ in record.hashed_rows:
        try:
            about = os.stat(os.path.join(root, path))
        except (OSError, ValueError):
            lines.append(path)
            continue
        lines.append(f"{path} {about.st_size} {about.st_mode} {about.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _flaw(path: str, listed: str, size: str, *, hashed: bool) -> str:
    """Return what is wrong with a file, "" when it is as listed."""
    try:
        about = os.stat(path)
    except PermissionError:
        return "cannot be read: Permission denied"
    except (OSError, ValueError):
        return "is missing"
    if not stat.S_ISREG(about.st_mode):
        return "is not a regular file"
    if size.isdecimal() and int(size) != about.st_size:
        return f"has {about.st_size} bytes, not {size}"
    if not hashed:
        # What everybody may read needs no second call: there are thousands of files.
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


def _is_of_venv(folder: str, name: str) -> bool:
    if name not in _OF_VENVS:
        return False
    wanted = _OF_VENVS[name]
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return wanted is None or file.read(1000).strip() == wanted
    except OSError:
        return False


def _readable(text: str) -> str:
    """A name of any bytes as a short text that JSON can hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")[:_LONGEST_FLAW]
