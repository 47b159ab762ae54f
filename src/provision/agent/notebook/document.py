"""The document of a cell (`document.json`), read strictly into frozen values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..core.agent_config import (
    NONCE,
    PYTHON_VERSION,
    SYSTEM_PACKAGE,
    VARIABLE,
    VERSION,
    DocumentError,
    declared_variables,
    open_document,
    read_install_request,
    read_locked_uv,
    read_paths,
)
from ..core.json_fields import FieldReader
from ..core.uv_tool import LockedUv

SCHEMA = "provision.agent.notebook/1"
_PACKAGE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SECRET = re.compile(r"[^\r\n\0]{1,200}")


@dataclass(frozen=True, slots=True)
class CatalogueRuntime:
    """A row of the catalogue of Colab runtimes, as of a day; None for what it does not list."""

    version: str
    as_of: str
    python: str | None
    torch: str | None
    flavour: str | None
    os: str | None
    driver: str | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """The card that the spec requires; `device` is its name in nvidia-smi, None if unknown."""

    type: str
    device: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Document:
    """The whole content of a cell's document.

    `install` is a document of the installer without an interpreter, `expectations` one of the
    probe; both are passed on as they are.
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
        """The packages go into the interpreter of the image."""
        return self.isolation == "system"

    @property
    def variables(self) -> dict[str, str]:
        """Variables of programs: `env`, and PROVISION_PATH_<NAME> for each folder."""
        return declared_variables(self.env, self.paths)

    def required_size(self, key: str) -> int | None:
        """Return a size that the spec requires ("ram_bytes"), None for no requirement."""
        requires = self.expectations.get("requires")
        value = requires.get(key) if isinstance(requires, dict) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return int(value)


def parse_document(document: object) -> Document:
    """Return the values of a decoded document.

    Whatever reaches a command line is checked against its grammar here, although it was checked
    where it was written.

    Raises:
        DocumentError: a field does not have its form; the message names it.
    """
    reader = open_document(document, SCHEMA)
    isolation = reader.one_of("isolation", ("system", "venv"))
    install = read_install_request(reader, "shared" if isolation == "system" else "own")
    nonce = reader.text("nonce", NONCE)
    expectations = reader.mapping("expectations")
    if expectations.get("nonce") != nonce or not isinstance(expectations.get("python"), dict):
        raise DocumentError("the document: expectations must have the document's nonce, and python")
    predicted = reader.section("predicted")
    return Document(
        tool=reader.text_map("tool"),
        spec=reader.text_map("spec"),
        lock=reader.text_map("lock"),
        nonce=nonce,
        runtime=_runtime(reader.optional_section("runtime")),
        isolation=isolation,
        python=reader.text("python", PYTHON_VERSION),
        gpu=_gpu(reader.optional_section("gpu")),
        driver_min=reader.optional_text("driver_min", VERSION),
        system_packages=reader.texts("system_packages", SYSTEM_PACKAGE),
        install=install,
        packages=_packages(install),
        predicted_restart=predicted.texts("restart", _PACKAGE),
        predicted_changed=predicted.text_map("changed", _PACKAGE),
        protected=frozenset(reader.texts("protected", _PACKAGE)),
        env=reader.text_map("env", VARIABLE),
        paths=read_paths(reader),
        secrets=reader.text_map("secrets", VARIABLE, _SECRET),
        uv=read_locked_uv(reader),
        expectations=expectations,
    )


def _runtime(runtime: FieldReader | None) -> CatalogueRuntime | None:
    if runtime is None:
        return None
    optional = ("python", "torch", "flavour", "os", "driver")
    return CatalogueRuntime(
        runtime.text("version"),
        runtime.text("as_of"),
        *(runtime.optional_text(key) for key in optional),
    )


def _gpu(gpu: FieldReader | None) -> Gpu | None:
    if gpu is None:
        return None
    return Gpu(gpu.text("type"), gpu.optional_text("device"), gpu.count("count", 10**4))


def _packages(install: dict[str, Any]) -> dict[str, str]:
    packages = {}
    for position, entry in enumerate(install["packages"]):
        name, version = (
            (entry.get("name"), entry.get("version")) if isinstance(entry, dict) else (None, None)
        )
        if not isinstance(version, str) or not _PACKAGE.fullmatch(str(name)):
            raise DocumentError(
                f"the document: install.packages[{position}] has to name a package and its version"
            )
        packages[str(name)] = version
    return packages
