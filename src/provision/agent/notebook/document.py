"""What is to become of this runtime: `document.json`, read strictly into frozen values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = "provision.agent.notebook/1"

_DIGEST = re.compile(r"(sha256:)?[0-9a-f]{64}")
_NONCE = re.compile(r"[A-Za-z0-9_-]{8,128}")
_MINOR = re.compile(r"3\.\d{1,2}")
_VERSION = re.compile(r"\d+(\.\d+)+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYSTEM_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_PACKAGE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_WHEEL = re.compile(r"uv-[A-Za-z0-9_.-]+\.whl")
_SECRET = re.compile(r"[^\r\n\0]{1,200}")


class DocumentError(Exception):
    """The document cannot be followed; the text is one line for a person."""


@dataclass(frozen=True, slots=True)
class CatalogueRuntime:
    """What the catalogue of Colab runtimes lists, as of a day; None where it does not tell."""

    version: str
    as_of: str
    python: str | None
    torch: str | None
    flavour: str | None
    os: str | None
    driver: str | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """The card that the spec asks for; `device` is what nvidia-smi calls it, None where that is not
    known.
    """

    type: str
    device: str | None
    count: int


@dataclass(frozen=True, slots=True)
class LockedUv:
    """The uv that may be fetched: its exact version, and the sha256 of every wheel of it that may
    be taken.
    """

    version: str
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """All that one cell is told. `install` is a document of the installer without an interpreter,
    `expectations` one of the probe; both are handed on.
    """

    tool: dict[str, str]
    spec: dict[str, str]
    lock: dict[str, str]
    nonce: str
    runtime: CatalogueRuntime | None
    isolation: str
    python: str
    gpu: Gpu | None
    driver_min: str | None
    system_packages: tuple[str, ...]
    install: dict[str, Any]
    packages: dict[str, str]
    predicted_restart: tuple[str, ...]
    predicted_changed: dict[str, str]
    protected: frozenset[str]
    env: dict[str, str]
    paths: dict[str, str]
    secrets: dict[str, str]
    uv: LockedUv | None
    expectations: dict[str, Any]

    @property
    def shared(self) -> bool:
        """Whether the packages go into the interpreter of the image."""
        return self.isolation == "system"

    @property
    def variables(self) -> dict[str, str]:
        """What programs get: `env`, and PROVISION_PATH_<NAME> for each path."""
        return {
            **self.env,
            **{f"PROVISION_PATH_{name.upper()}": path for name, path in self.paths.items()},
        }

    def required_size(self, key: str) -> int | None:
        """A size that the spec asks for ("ram_bytes"), None where it asks for none."""
        found = self.expectations.get("requires")
        value = found.get(key) if isinstance(found, dict) else None
        return (
            int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        )


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
    where it was written.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DocumentError(f"the document is not for this program, which reads {SCHEMA}")
    take = _FieldReader(document)
    isolation = take.one_of("isolation", ("system", "venv"))
    gpu, uv, runtime, predicted = (
        take.part("gpu", optional=True),
        take.part("uv", optional=True),
        take.part("runtime", optional=True),
        take.part("predicted"),
    )
    install = _install(take, "shared" if isolation == "system" else "own")
    nonce = take.like("nonce", _NONCE)
    expectations: dict[str, Any] = take.part("expectations").document
    if expectations.get("nonce") != nonce or not isinstance(expectations.get("python"), dict):
        raise DocumentError(
            "the document: expectations has to carry the document's nonce, and python"
        )
    return Document(
        tool=take.part("tool").table(),
        spec=take.part("spec").table(),
        lock=take.part("lock").table(),
        nonce=nonce,
        runtime=runtime and _runtime(runtime),
        isolation=isolation,
        python=take.like("python", _MINOR),
        gpu=gpu and Gpu(gpu.text("type"), gpu.maybe("device"), gpu.count("count")),
        driver_min=take.maybe("driver_min", _VERSION),
        system_packages=tuple(take.texts("system_packages", _SYSTEM_PACKAGE)),
        install=install,
        packages=_packages(install),
        predicted_restart=tuple(predicted.texts("restart", _PACKAGE)),
        predicted_changed=predicted.part("changed").table(_PACKAGE),
        protected=frozenset(take.texts("protected", _PACKAGE)),
        env=take.part("env").table(_VARIABLE),
        paths={
            name: _absolute(path, name)
            for name, path in take.part("paths").table(_VARIABLE).items()
        },
        secrets=take.part("secrets").table(_VARIABLE, _SECRET),
        uv=uv
        and LockedUv(
            uv.like("version", _VERSION),
            tuple(
                one.removeprefix("sha256:")
                for one in uv.part("files").table(_WHEEL, _DIGEST).values()
            ),
        ),
        expectations=expectations,
    )


def _runtime(take: _FieldReader) -> CatalogueRuntime:
    return CatalogueRuntime(
        take.text("version"),
        take.text("as_of"),
        *(take.maybe(key) for key in ("python", "torch", "flavour", "os", "driver")),
    )


def _install(take: _FieldReader, mode: str) -> dict[str, Any]:
    install: dict[str, Any] = take.part("install").document
    if "python" in install or install.get("mode") != mode:
        raise DocumentError(
            f"the document: install has to be in mode {mode}, without an interpreter: that "
            "is chosen here"
        )
    return install


def _packages(install: dict[str, Any]) -> dict[str, str]:
    found = install.get("packages")
    if not isinstance(found, list):
        raise DocumentError("the document: install.packages has to be a list")
    for place, entry in enumerate(found):
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("version"), str)
            or not _PACKAGE.fullmatch(str(entry.get("name")))
        ):
            raise DocumentError(
                f"the document: install.packages[{place}] has to name a package and its version"
            )
    return {entry["name"]: entry["version"] for entry in found}


def _absolute(path: str, name: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise DocumentError(f"the document: paths.{name} has to be absolute, without ..")
    return path


class _FieldReader:
    """Takes typed values out of one object of the document."""

    def __init__(self, document: dict[str, Any], where: str = "") -> None:
        self.document, self.where = document, where

    def part(self, key: str, optional: bool = False) -> Any:
        value = self.document.get(key)
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

    def maybe(self, key: str, form: re.Pattern[str] | None = None) -> str | None:
        if self.document.get(key) is None:
            return None
        return self.like(key, form) if form else self.text(key)

    def like(self, key: str, form: re.Pattern[str]) -> str:
        value = self.text(key)
        if not form.fullmatch(value):
            raise self._wrong(key, f"of the form {form.pattern}")
        return value

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in allowed:
            raise self._wrong(key, " or ".join(allowed))
        return value

    def count(self, key: str) -> int:
        value = self.document.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 10**4:
            raise self._wrong(key, "a number above 0")
        return value

    def texts(self, key: str, form: re.Pattern[str]) -> list[str]:
        value = self.document.get(key)
        if not isinstance(value, list) or not all(
            isinstance(one, str) and form.fullmatch(one) for one in value
        ):
            raise self._wrong(key, f"a list of texts of the form {form.pattern}")
        return value

    def table(
        self, keys: re.Pattern[str] | None = None, values: re.Pattern[str] | None = None
    ) -> dict[str, str]:
        for key, value in self.document.items():
            known = keys is None or keys.fullmatch(key)
            if (
                not known
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
