"""What is to become of an instance: `document.json`, read strictly into frozen values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = "provision.agent.workbench/1"

_SHA256 = re.compile(r"(sha256:)?[0-9a-f]{64}")
_NONCE = re.compile(r"[A-Za-z0-9_-]{8,128}")
_ADDRESS = re.compile(r"gs://[a-z0-9][a-z0-9._-]+/[^\r\n\0]+")
_MINOR = re.compile(r"3\.\d{1,2}")
_VERSION = re.compile(r"\d+(\.\d+)+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYSTEM_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_SECRET = re.compile(
    r"projects/[A-Za-z0-9:._-]+/secrets/[A-Za-z0-9_-]+/versions/(latest|[0-9]+|[A-Za-z][A-Za-z0-9_-]*)"
)
_KERNEL = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_WHEEL = re.compile(r"uv-[A-Za-z0-9_.-]+\.whl")


class DocumentError(Exception):
    """The document cannot be followed; the text is one line for a person."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file in Cloud Storage that the document names: its gs:// address and the sha256 of its
    content (hexadecimal).
    """

    address: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LockedUv:
    """The uv to use: its exact version, and the sha256 of every wheel of it that may be taken."""

    version: str
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """Under which name Jupyter knows the environment, and what a person sees."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Document:
    """All that one run is told. `install` is a document of the installer without an interpreter,
    `expectations` one of the probe; both are handed on.
    """

    nonce: str
    digest: str
    python: str
    python_mirror: str | None
    uv: LockedUv | None
    install: dict[str, Any]
    expectations: dict[str, Any]
    installer: RemoteFile
    probe: RemoteFile
    report: str
    log: str
    status: str
    system_packages: tuple[str, ...]
    env: dict[str, str]
    paths: dict[str, str]
    secrets: dict[str, str]
    gpu: tuple[str, int] | None
    driver_timeout_s: int
    kernel: KernelSpec | None
    simulated: tuple[str, ...]

    @property
    def package_count(self) -> int:
        """How many packages the environment holds."""
        return len(self.install["packages"])

    @property
    def variables(self) -> dict[str, str]:
        """What programs in the environment get: `env`, and PROVISION_PATH_<NAME> for each path."""
        return {
            **self.env,
            **{f"PROVISION_PATH_{name.upper()}": path for name, path in self.paths.items()},
        }


def read_document(path: Path) -> Document:
    """Read a document; raises DocumentError that names the place at fault."""
    try:
        return parse_document(json.loads(path.read_bytes()))
    except OSError as error:
        raise DocumentError(f"cannot read the document {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise DocumentError(f"the document {path} is not JSON") from None


def parse_document(document: object) -> Document:
    """Turn a decoded document into a Document; raises DocumentError with the first place at fault.

    Whatever reaches a command line is checked against its grammar here, though it was checked
    where it was written: no value may begin with a dash, hold a
    control character, or name a place that it should not.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DocumentError(f"the document is not for this program, which reads {SCHEMA}")
    take = _FieldReader(document)
    gpu, kernel, uv = (
        take.part("gpu", optional=True),
        take.part("kernel", optional=True),
        take.part("uv", optional=True),
    )
    return Document(
        nonce=take.like("nonce", _NONCE),
        digest=take.like("digest", _SHA256).removeprefix("sha256:"),
        python=take.like("python", _MINOR),
        python_mirror=None if document.get("python_mirror") is None else take.text("python_mirror"),
        uv=uv
        and LockedUv(
            uv.like("version", _VERSION), tuple(uv.part("files").table(_WHEEL, _SHA256).values())
        ),
        install=_install(take),
        expectations=take.part("expectations").document,
        installer=_fetched(take.part("fetch").part("installer")),
        probe=_fetched(take.part("fetch").part("probe")),
        report=take.part("report").like("report", _ADDRESS),
        log=take.part("report").like("log", _ADDRESS),
        status=take.part("report").like("status", _ADDRESS),
        system_packages=tuple(take.texts("system_packages", _SYSTEM_PACKAGE)),
        env=take.part("env").table(_VARIABLE),
        paths={
            name: _absolute(path, name)
            for name, path in take.part("paths").table(_VARIABLE).items()
        },
        secrets=take.part("secrets").table(_VARIABLE, _SECRET),
        gpu=(gpu.text("type"), gpu.count("count")) if gpu else None,
        driver_timeout_s=take.count("driver_timeout_s") if "driver_timeout_s" in document else 900,
        kernel=kernel and KernelSpec(kernel.like("name", _KERNEL), kernel.text("title")),
        simulated=tuple(take.texts("simulated")),
    )


def _install(take: _FieldReader) -> dict[str, Any]:
    install: _FieldReader = take.part("install")
    if not isinstance(install.document.get("packages"), list):
        raise DocumentError("the document: install.packages has to be a list")
    if "python" in install.document or install.document.get("mode") != "own":
        raise DocumentError(
            "the document: install has to be in mode own, without an interpreter: the "
            "environment is made here"
        )
    return install.document


def _fetched(take: _FieldReader) -> RemoteFile:
    return RemoteFile(
        take.like("uri", _ADDRESS), take.like("sha256", _SHA256).removeprefix("sha256:")
    )


def _absolute(path: str, name: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise DocumentError(f"the document: paths.{name} has to be absolute, without ..")
    return path


class _FieldReader:
    """Takes typed values out of one object of the document."""

    def __init__(self, document: dict[str, Any], where: str = "") -> None:
        self.document, self.where = document, where

    def part(self, key: str, optional: bool = False) -> Any:
        value = self.document.get(key, None if optional else {} if key in _MAY_BE_EMPTY else None)
        if optional and value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(key, "an object")
        return _FieldReader(value, f"{self.where}{key}.")

    def text(self, key: str) -> str:
        value = self.document.get(key)
        if not isinstance(value, str) or any(character in value for character in "\r\n\0"):
            raise self._wrong(key, "a text of one line")
        return value

    def like(self, key: str, form: re.Pattern[str]) -> str:
        value = self.text(key)
        if not form.fullmatch(value):
            raise self._wrong(key, f"of the form {form.pattern}")
        return value

    def count(self, key: str) -> int:
        value = self.document.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 10**7:
            raise self._wrong(key, "a number above 0")
        return value

    def texts(self, key: str, form: re.Pattern[str] | None = None) -> list[str]:
        value = self.document.get(key, [])
        if not isinstance(value, list) or not all(
            isinstance(one, str) and (form is None or form.fullmatch(one)) for one in value
        ):
            raise self._wrong(
                key, "a list of texts" + (f" of the form {form.pattern}" if form else "")
            )
        return value

    def table(self, keys: re.Pattern[str], values: re.Pattern[str] | None = None) -> dict[str, str]:
        for key, value in self.document.items():
            if (
                not keys.fullmatch(key)
                or not isinstance(value, str)
                or "\0" in value
                or (values is not None and not values.fullmatch(value))
            ):
                raise self._wrong(
                    key, "a name with a text" + (f" of the form {values.pattern}" if values else "")
                )
        return dict(self.document)

    def _wrong(self, key: str, what: str) -> DocumentError:
        return DocumentError(f"the document: {self.where}{key} has to be {what}"[:300])


_MAY_BE_EMPTY = ("env", "paths", "secrets")
