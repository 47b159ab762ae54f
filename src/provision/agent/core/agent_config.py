"""The documents of programs on devices: reading them, and the fields that they share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .code_files import MANIFEST, code_folder
from .json_fields import FieldReader


@dataclass(frozen=True, slots=True)
class LockedUv:
    """An exact version of uv, and the sha256 (hexadecimal) of every wheel that may be installed."""

    version: str
    hashes: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """A line of a requirements file."""
        return f"uv=={self.version} " + " ".join(f"--hash=sha256:{value}" for value in self.hashes)

    def folder(self, tools: Path) -> Path:
        """Return the folder of this version among the tools."""
        return tools / f"uv-{self.version}"


def pip_arguments(requirements: Path, target: Path) -> list[str]:
    """Return pip's arguments to install a requirements file, by hash, into a folder."""
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--upgrade"]
    return ["install", *options, "--target", str(target), "--requirement", str(requirements)]


def parse_uv_version(output: str) -> str | None:
    """Return the version in the output of `uv --version`."""
    match = re.match(r"uv (\d+(?:\.\d+)*)", output)
    return match[1] if match else None


SHA256 = re.compile(r"(sha256:)?[0-9a-f]{64}")
VERSION = re.compile(r"\d+(\.\d+)+")
_NONCE = re.compile(r"[A-Za-z0-9_-]{8,128}")
_PYTHON_VERSION = re.compile(r"3\.\d{1,2}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYSTEM_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_WHEEL = re.compile(r"uv-[A-Za-z0-9_.-]+\.whl")
D = TypeVar("D")


class DocumentError(Exception):
    """An unusable document; the text is a message of one line."""


def read_document(path: Path, parse: Callable[[object], D]) -> D:
    """Read and parse a document. Raises DocumentError."""
    try:
        return parse(json.loads(path.read_bytes()))
    except OSError as error:
        raise DocumentError(f"cannot read the document {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise DocumentError(f"the document {path} is not valid JSON") from None


def open_document(document: object, schema: str) -> FieldReader:
    """Return the reader of a decoded document. Raises DocumentError for another schema."""
    if not isinstance(document, dict) or document.get("schema") != schema:
        raise DocumentError(f"the document's schema is not {schema}")
    return FieldReader(document, "the document", _field_error, optional_keys=True)


@dataclass(frozen=True)
class SetupDocument:
    """The fields that the documents of a notebook and of an instance share.

    `install` is a document of the installer without an interpreter, `expectations` one of the
    probe; both are passed on as they are.
    """

    nonce: str
    python: str
    uv: LockedUv | None
    install: dict[str, Any]
    expectations: dict[str, Any]
    system_packages: tuple[str, ...]
    env: dict[str, str]
    paths: dict[str, str]
    secrets: dict[str, str]

    @property
    def code_digest(self) -> str | None:
        """The digest of the code that comes with the document; None without code."""
        code = self.expectations.get("code")
        digest = code.get("digest") if isinstance(code, dict) else None
        return digest if isinstance(digest, str) and SHA256.fullmatch(digest) else None

    def find_code(self, parent: Path) -> Path | None:
        """Return the folder of the code's files below a folder; None without code."""
        return None if self.code_digest is None else code_folder(parent, self.code_digest)

    def locate_code(self, parent: Path) -> dict[str, Any]:
        """Return the expectations with the place of the code below a folder."""
        folder = self.find_code(parent)
        if folder is None:
            return self.expectations
        place = {"folder": str(folder), "manifest": str(folder.parent / MANIFEST)}
        return {**self.expectations, "code": {**self.expectations["code"], **place}}

    @property
    def variables(self) -> dict[str, str]:
        """Variables of programs: `env`, and PROVISION_PATH_<NAME> for each folder."""
        folders = {f"PROVISION_PATH_{name.upper()}": path for name, path in self.paths.items()}
        return {**self.env, **folders}


def read_shared_fields(
    reader: FieldReader, install_mode: str, secret_form: re.Pattern[str]
) -> dict[str, Any]:
    """Return the values of a SetupDocument's fields. Raises DocumentError."""
    return {
        "nonce": reader.text("nonce", _NONCE),
        "python": reader.text("python", _PYTHON_VERSION),
        "uv": _read_locked_uv(reader.optional_section("uv")),
        "install": _read_install_request(reader, install_mode),
        "expectations": reader.mapping("expectations"),
        "system_packages": reader.texts("system_packages", _SYSTEM_PACKAGE),
        "env": reader.text_map("env", _VARIABLE),
        "paths": _read_paths(reader),
        "secrets": reader.text_map("secrets", _VARIABLE, secret_form),
    }


def _read_locked_uv(uv: FieldReader | None) -> LockedUv | None:
    if uv is None:
        return None
    hashes = uv.text_map("files", _WHEEL, SHA256).values()
    version = uv.text("version", VERSION)
    return LockedUv(version, tuple(value.removeprefix("sha256:") for value in hashes))


def _read_paths(reader: FieldReader) -> dict[str, str]:
    paths = reader.text_map("paths", _VARIABLE)
    for name, path in paths.items():
        if not path.startswith("/") or ".." in path.split("/"):
            raise reader.error(f"paths.{name}", "an absolute path without ..", path)
    return paths


def _read_install_request(reader: FieldReader, mode: str) -> dict[str, Any]:
    """Return the installer's document, whose interpreter is chosen on the device."""
    install = reader.mapping("install")
    if "python" in install or install.get("mode") != mode:
        requirement = f"an object with mode {mode} and without an interpreter"
        raise reader.error("install", requirement, install.get("mode"))
    if not isinstance(install.get("packages"), list):
        raise reader.error("install.packages", "a list", install.get("packages"))
    return install


def _field_error(message: str, _reason: str) -> DocumentError:
    # Without the reason: an address of an index may hold a password.
    return DocumentError(message[:300])
