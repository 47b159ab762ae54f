"""The installer's document (`install.json`), read strictly into frozen values."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from ..core.json_fields import FieldReader
from ..core.own_wheels import OWN_INDEX

SCHEMA = "provision.install/1"
DEFAULT_INDEX = "pypi"
"""The name of the default index; packages from it need no entry."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MINOR = re.compile(r"\d+\.\d+")


class InstallMode(str, Enum):
    """Ownership of the environment.

    `own`: provision made it, and it ends up with exactly the packages. `shared`: nothing else in it
    is changed.
    """

    OWN = "own"
    SHARED = "shared"


class AuditLevel(str, Enum):
    """Comparison of a file with its RECORD: by sha256 and size, or by size, which opens no file."""

    FULL = "full"
    SIZE = "size"


class InstallError(Exception):
    """The request could not be tried (exit code 2), or cannot be met (1).

    `what` is one line; `why` and `hint` may be empty.
    """

    def __init__(self, what: str, why: str = "", hint: str = "", exit_code: int = 2) -> None:
        super().__init__(what)
        self.what, self.why, self.hint, self.exit_code = what, why, hint, exit_code


@dataclass(frozen=True, slots=True)
class PackageToInstall:
    """One package: canonical name, exact version, index (None: the default), sha256 of its files.

    `from_source`: its files are source, so that it is built with the installed packages.
    `editable`: the folder that is installed itself, without an index; `build` are the versions of
    what builds it.
    """

    name: str
    version: str
    index: str | None
    hashes: tuple[str, ...]
    from_source: bool = False
    editable: str = ""
    build: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """The whole request: interpreter, packages and their sources.

    `indexes` maps names to addresses; without the default index, uv uses its own. `find_links` are
    further folders and pages of wheels. `reinstall` are packages to install again even in
    the requested version. `present` are packages that are installed already and are neither
    compared nor changed. `wheels` is the archive with the wheels of the project's own packages.
    """

    mode: InstallMode
    python: str
    python_version: str
    packages: tuple[PackageToInstall, ...]
    indexes: dict[str, str] = field(default_factory=dict)
    find_links: tuple[str, ...] = ()
    audit: AuditLevel = AuditLevel.FULL
    reinstall: frozenset[str] = frozenset()
    present: tuple[PackageToInstall, ...] = ()
    wheels: str = ""


def read_document(path: Path, python: str) -> InstallRequest:
    """Read a document; `python` is the interpreter if it names none. Raises InstallError."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise InstallError(
            f"cannot read the document {path}", error.strerror or str(error)
        ) from None
    except (ValueError, RecursionError) as error:
        raise InstallError(
            f"the document {path} is damaged",
            f"it is not valid JSON: {str(error)[:200]}",
            "create the document again with provision",
        ) from None
    return parse_document(document, str(path), python)


def parse_document(document: object, where: str, python: str) -> InstallRequest:
    """Return the request of a decoded document.

    Raises:
        InstallError: a field does not have its form, or two of them contradict each other.
    """
    if not isinstance(document, dict):
        raise InstallError(
            f"{where}: the document must be a JSON object", f"it is {document!r:.60}"
        )
    if document.get("schema") != SCHEMA:
        hint = "use the installer of the provision version that wrote the file"
        raise InstallError(
            f"{where} is for a different version of the installer",
            f"its schema is {document.get('schema')!r:.60}, expected {SCHEMA}",
            hint,
        )
    defaults = {"python": python, "indexes": {}, "links": [], "audit": "full", "wheels": ""}
    reader = FieldReader({**defaults, **document}, where, InstallError)
    entries = reader.items("packages")
    packages = tuple(_package(reader, entry, f"packages[{i}]") for i, entry in enumerate(entries))
    indexes = {
        str(name): reader.check_text(f"indexes.{name}", address)
        for name, address in reader.mapping("indexes").items()
    }
    wheels = reader.text("wheels")
    _check_packages(packages, {**indexes, **({OWN_INDEX: wheels} if wheels else {})}, where)
    links = enumerate(reader.items("links"))
    return InstallRequest(
        mode=InstallMode(reader.one_of("mode", tuple(mode.value for mode in InstallMode))),
        python=reader.text("python"),
        python_version=reader.text("python_version", _MINOR, "a version such as 3.12"),
        packages=packages,
        indexes=indexes,
        find_links=tuple(reader.check_text(f"links[{i}]", link) for i, link in links),
        audit=AuditLevel(reader.one_of("audit", tuple(audit.value for audit in AuditLevel))),
        wheels=wheels,
    )


def _check_packages(
    packages: tuple[PackageToInstall, ...], indexes: Mapping[str, str], where: str
) -> None:
    repeated = [
        name for name, count in Counter(package.name for package in packages).items() if count > 1
    ]
    if repeated:
        raise InstallError(
            f"{where}: {min(repeated)} is listed twice",
            "an environment can contain only one version of each package",
        )
    for package in packages:
        if package.index is not None and not indexes.get(package.index):
            raise InstallError(
                f"{where}: {package.name} comes from the index {package.index}, which has no URL",
                f"the document declares these indexes: {', '.join(indexes) or 'none'}",
            )


def _package(reader: FieldReader, entry: object, route: str) -> PackageToInstall:
    if not isinstance(entry, dict):
        raise reader.error(route, "an object", entry)
    files = entry.get("files")
    if not isinstance(files, dict):
        raise reader.error(f"{route}.files", "an object", files)
    if not files:
        raise InstallError(
            f"{reader.source}: {route}.files is empty", "packages without a hash are not installed"
        )
    index = entry.get("index")
    is_default = index in (None, DEFAULT_INDEX)
    check = reader.check_text
    return PackageToInstall(
        check(f"{route}.name", entry.get("name"), _NAME, "a canonical package name"),
        check(f"{route}.version", entry.get("version"), _VERSION, "a version"),
        None if is_default else check(f"{route}.index", index),
        tuple(
            check(f"{route}.files.{name}", value, _SHA256, "a sha256 in hexadecimal digits")
            for name, value in files.items()
        ),
        any(not name.endswith(".whl") for name in files),
    )
