"""Whether the files of a package are those that its RECORD lists, and what lies beside the packages that no RECORD lists."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from .inventory import Installed

_CHUNK = 2**20
_LONGEST_FLAW = 200
_OF_VENVS = {"_virtualenv.pth": b"import _virtualenv", "_virtualenv.py": None}
"""What makers of virtual environments put there themselves, and what it has to say (None: anything). Source: virtualenv; uv up to 0.9."""

_AT_START = frozenset({"sitecustomize.py", "sitecustomize", "usercustomize.py", "usercustomize"})
"""Modules that Python's `site` imports at each start, beside the .pth files."""


@dataclass(frozen=True, slots=True)
class Record:
    """A package's own list of its files: path, hash and size of each as texts. `flaw` says why there is none to go by, `garbled` that it was damaged."""

    rows: tuple[tuple[str, str, str], ...]
    flaw: str = ""
    garbled: bool = False


def read_record(dist: Installed) -> Record:
    """Return the RECORD of a distribution; one that is missing, is no table of three columns or lists no file with a hash has a flaw."""
    try:
        with open(os.path.join(dist.metadata, "RECORD"), newline="", encoding="utf-8") as lines:
            rows = tuple((path, listed, size) for path, listed, size in csv.reader(lines))
    except OSError as error:
        return Record((), f"its RECORD cannot be read: {error.strerror or error}")
    except (ValueError, csv.Error):
        return Record((), "its RECORD is garbled", garbled=True)
    return Record(rows, "" if any(listed for _, listed, _ in rows) else "its RECORD lists no file with a hash")


def audit(dist: Installed, record: Record, *, hashed: bool) -> tuple[int, dict[str, str]]:
    """Return how many files were compared with the RECORD, by size or by size and hash, and what is wrong: a short text by file.

    Lines without a hash (bytecode, the RECORD itself) are left out. An edit that keeps the size is seen by the hash only.
    """
    root = os.path.dirname(dist.metadata)
    listed = [row for row in record.rows if row[1]]
    flaws = [(path, _flaw(os.path.join(root, path), digest, size, hashed)) for path, digest, size in listed]
    return len(listed), {os.path.join(root, path): _readable(f"{path} {flaw}") for path, flaw in flaws if flaw}


def fitting_another(files: Collection[str], records: Iterable[tuple[Installed, Record]], *, hashed: bool) -> frozenset[str]:
    """Return those of the files that some RECORD fits: packages that bring a file of one name (README.md, tests/__init__.py) overwrite each other's."""
    rows = ((os.path.join(os.path.dirname(dist.metadata), path), listed, size) for dist, record in records for path, listed, size in record.rows if listed)
    return frozenset(file for file, listed, size in rows if file in files and not _flaw(file, listed, size, hashed))


def unlisted(folder: str, records: Iterable[tuple[Installed, Record]]) -> tuple[list[str], list[str]]:
    """Return what lies at the top of a site-packages folder that none of these packages lists: what Python reads at each start, and other names.

    Bytecode caches are left out.
    """
    known = {"__pycache__"}
    for dist, record in records:
        known.add(os.path.basename(dist.metadata))
        known.update(path.removeprefix("./").partition("/")[0] for path, _, _ in record.rows)
    try:
        names = sorted(name for name in os.listdir(folder) if name not in known and not _is_of_venv(folder, name))
    except OSError:
        return [], []
    started = [name for name in names if name.endswith(".pth") or name in _AT_START]
    return [_readable(name) for name in started], [_readable(name) for name in names if name not in started]


def _flaw(path: str, listed: str, size: str, hashed: bool) -> str:
    """Return what is wrong with a file, "" when it is as listed."""
    try:
        about = os.stat(path)
    except PermissionError:
        return "cannot be read: Permission denied"
    except (OSError, ValueError):
        return "is missing"
    if not stat.S_ISREG(about.st_mode):
        return "is no file"
    if size.isdecimal() and int(size) != about.st_size:
        return f"has {about.st_size} bytes, not {size}"
    if not hashed:
        # What everybody may read needs no second call: there are thousands of files.
        return "" if about.st_mode & stat.S_IROTH or os.access(path, os.R_OK) else "cannot be read: Permission denied"
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
