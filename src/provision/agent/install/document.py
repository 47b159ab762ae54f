"""What is to be installed, into which interpreter and how: `install.json`, read strictly into
frozen values.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

SCHEMA = "provision.install/1"
DEFAULT_INDEX = "pypi"
"""The name of the default index: a package of it is bound to no index."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MINOR = re.compile(r"\d+\.\d+")


class InstallMode(str, Enum):
    """`own`: the environment is ours and ends up holding exactly the packages. `shared`: it is not
    ours, and nothing else in it is touched.
    """

    OWN = "own"
    SHARED = "shared"


class AuditLevel(str, Enum):
    """How a file is compared with the RECORD of its package: by sha256 and size, or by size only,
    which reads no file.
    """

    FULL = "full"
    SIZE = "size"


class InstallError(Exception):
    """The question could not be asked (exit code 2), or what was asked does not hold (1). `what` is
    one line; `why` and `hint` may be empty.
    """

    def __init__(self, what: str, why: str = "", hint: str = "", exit_code: int = 2) -> None:
        super().__init__(what)
        self.what, self.why, self.hint, self.exit_code = what, why, hint, exit_code


@dataclass(frozen=True, slots=True)
class Pin:
    """One package: canonical name, exact version, the index it is bound to (None: the default one),
    the sha256 of every file that may be taken.

    `built`: its files are source, so that it is built as it is installed, by what is there already.
    """

    name: str
    version: str
    index: str | None
    hashes: tuple[str, ...]
    from_source: bool = False


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """All that is asked for. `python` is the interpreter's path, `minor` the version that the
    packages were locked for.

    `indexes` maps names to addresses; the default index may be missing (uv's own is meant then).
    `links` are further places of wheels. `again` are packages
    to install anew although they are there as wanted.
    """

    mode: InstallMode
    python: str
    python_version: str
    pins: tuple[Pin, ...]
    indexes: dict[str, str] = field(default_factory=dict)
    find_links: tuple[str, ...] = ()
    audit: AuditLevel = AuditLevel.FULL
    reinstall: frozenset[str] = frozenset()


def read_document(path: Path, python: str) -> InstallRequest:
    """Read a document; `python` is the interpreter when it names none. Raises InstallError that
    names the file and the place at fault.
    """
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise InstallError(
            f"cannot read the document {path}", error.strerror or str(error)
        ) from None
    except (ValueError, RecursionError) as error:
        raise InstallError(
            f"the document {path} is damaged",
            f"it is not JSON: {str(error)[:200]}",
            "make it again",
        ) from None
    return parse_document(document, str(path), python)


def parse_document(document: object, where: str, python: str) -> InstallRequest:
    """Turn a decoded document into what is wanted; raises InstallError with the first place at
    fault.
    """
    if not isinstance(document, dict):
        raise _wrong(where, "the document", "one JSON object", document)
    if document.get("schema") != SCHEMA:
        hint = "use the installer that belongs to the tool which wrote the file"
        raise InstallError(
            f"{where} is not for this installer",
            f"its schema is {document.get('schema')!r:.60}, expected {SCHEMA}",
            hint,
        )
    pins = tuple(
        _pin(entry, f"packages[{place}]", where)
        for place, entry in enumerate(_of(document, "packages", list, where))
    )
    twice = sorted({pin.name for pin in pins if sum(other.name == pin.name for other in pins) > 1})
    if twice:
        raise InstallError(
            f"{where}: {twice[0]} is listed twice", "an environment holds one version of a package"
        )
    indexes = {
        str(name): _text(address, f"indexes.{name}", where)
        for name, address in _of(document, "indexes", dict, where, {}).items()
    }
    for pin in pins:
        if pin.index is not None and not indexes.get(pin.index):
            raise InstallError(
                f"{where}: {pin.name} is bound to the index {pin.index}, which has no address",
                f"indexes are: {', '.join(indexes) or 'none'}",
            )
    return InstallRequest(
        mode=InstallMode(
            _one_of(document.get("mode"), "mode", tuple(mode.value for mode in InstallMode), where)
        ),
        python=_text(document.get("python", python), "python", where),
        python_version=_like(
            _MINOR,
            document.get("python_version"),
            "python_version",
            "a version such as 3.12",
            where,
        ),
        pins=pins,
        indexes=indexes,
        find_links=tuple(
            _text(link, f"links[{place}]", where)
            for place, link in enumerate(_of(document, "links", list, where, []))
        ),
        audit=AuditLevel(
            _one_of(
                document.get("audit", "full"),
                "audit",
                tuple(audit.value for audit in AuditLevel),
                where,
            )
        ),
    )


def _pin(entry: object, place: str, where: str) -> Pin:
    if not isinstance(entry, dict):
        raise _wrong(where, place, "an object", entry)
    files = _of(entry, "files", dict, f"{where}: {place}")
    if not files:
        raise InstallError(
            f"{where}: {place}.files is empty", "a package without a hash is not installed"
        )
    index = entry.get("index")
    named = None if index in (None, DEFAULT_INDEX) else _text(index, f"{place}.index", where)
    return Pin(
        _like(_NAME, entry.get("name"), f"{place}.name", "a name in its canonical form", where),
        _like(_VERSION, entry.get("version"), f"{place}.version", "a version", where),
        named,
        tuple(
            _like(_SHA256, value, f"{place}.files.{name}", "a sha256 in hexadecimal digits", where)
            for name, value in files.items()
        ),
        any(not name.endswith(".whl") for name in files),
    )


def _of(document: dict[str, Any], key: str, kind: type, where: str, default: Any = None) -> Any:
    value = document.get(key, default)
    if not isinstance(value, kind):
        raise _wrong(where, key, "a list" if kind is list else "an object", value)
    return value


def _text(value: object, place: str, where: str) -> str:
    # Line breaks would end a line of what uv reads; NUL cannot be an argument.
    if not isinstance(value, str) or any(character in value for character in "\r\n\0"):
        raise _wrong(where, place, "a text of one line", value)
    return value


def _like(form: re.Pattern[str], value: object, place: str, what: str, where: str) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise _wrong(where, place, what, value)
    return value


def _one_of(value: object, place: str, allowed: tuple[str, ...], where: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise _wrong(where, place, " or ".join(allowed), value)
    return value


def _wrong(where: str, place: str, what: str, value: object) -> InstallError:
    return InstallError(
        f"{where}: {place} has to be {what}",
        "it is missing" if value is None else f"it is {value!r:.60}",
    )
