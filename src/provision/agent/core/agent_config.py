"""Parts that the documents of all programs on devices share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from .json_fields import FieldReader
from .uv_tool import LockedUv

SHA256 = re.compile(r"(sha256:)?[0-9a-f]{64}")
NONCE = re.compile(r"[A-Za-z0-9_-]{8,128}")
PYTHON_VERSION = re.compile(r"3\.\d{1,2}")
VERSION = re.compile(r"\d+(\.\d+)+")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SYSTEM_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_WHEEL = re.compile(r"uv-[A-Za-z0-9_.-]+\.whl")
D = TypeVar("D")


class DocumentError(Exception):
    """A document that cannot be followed; the text is one line for a person."""


def read_document(path: Path, parse: Callable[[object], D]) -> D:
    """Read and parse a document. Raises DocumentError."""
    try:
        return parse(json.loads(path.read_bytes()))
    except OSError as error:
        raise DocumentError(f"cannot read the document {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise DocumentError(f"the document {path} is not JSON") from None


def open_document(document: object, schema: str) -> FieldReader:
    """Return the reader of a decoded document. Raises DocumentError for another schema."""
    if not isinstance(document, dict) or document.get("schema") != schema:
        raise DocumentError(f"the document is not for this program, which reads {schema}")
    return FieldReader(document, "the document", _field_error, optional_keys=True)


def read_locked_uv(reader: FieldReader) -> LockedUv | None:
    """Return the uv that may be fetched, if the document names one."""
    uv = reader.optional_section("uv")
    if uv is None:
        return None
    hashes = uv.text_map("files", _WHEEL, SHA256).values()
    version = uv.text("version", VERSION)
    return LockedUv(version, tuple(value.removeprefix("sha256:") for value in hashes))


def read_paths(reader: FieldReader) -> dict[str, str]:
    """Return the declared folders by name."""
    paths = reader.text_map("paths", VARIABLE)
    for name, path in paths.items():
        if not path.startswith("/") or ".." in path.split("/"):
            raise reader.error(f"paths.{name}", "absolute, without ..", path)
    return paths


def read_install_request(reader: FieldReader, mode: str) -> dict[str, Any]:
    """Return the installer's document, whose interpreter is chosen on the device."""
    install = reader.mapping("install")
    if "python" in install or install.get("mode") != mode:
        requirement = f"in mode {mode}, without an interpreter: that is chosen on the device"
        raise reader.error("install", requirement, install.get("mode"))
    if not isinstance(install.get("packages"), list):
        raise reader.error("install.packages", "a list", install.get("packages"))
    return install


def declared_variables(env: Mapping[str, str], paths: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of programs: `env`, and PROVISION_PATH_<NAME> for each folder."""
    return {**env, **{f"PROVISION_PATH_{name.upper()}": path for name, path in paths.items()}}


def _field_error(message: str, _reason: str) -> DocumentError:
    # Without the reason: an address of an index may hold a password.
    return DocumentError(message[:300])
