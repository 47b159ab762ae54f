"""The document of a run on an instance (`document.json`), read strictly into frozen values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..core.agent_config import (
    NONCE,
    PYTHON_VERSION,
    SHA256,
    SYSTEM_PACKAGE,
    VARIABLE,
    declared_variables,
    open_document,
    read_install_request,
    read_locked_uv,
    read_paths,
)
from ..core.json_fields import FieldReader
from ..core.uv_tool import LockedUv

SCHEMA = "provision.agent.workbench/1"
_ADDRESS = re.compile(r"gs://[a-z0-9][a-z0-9._-]+/[^\r\n\0]+")
_SECRET = re.compile(
    r"projects/[A-Za-z0-9:._-]+/secrets/[A-Za-z0-9_-]+"
    r"/versions/(latest|[0-9]+|[A-Za-z][A-Za-z0-9_-]*)"
)
_KERNEL = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file in Cloud Storage: its gs:// address and the sha256 of its content (hexadecimal)."""

    address: str
    sha256: str


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """The Jupyter kernel of the environment: its identifier and the title that people see."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Document:
    """The whole content of a run's document.

    `install` is a document of the installer without an interpreter, `expectations` one of the
    probe; both are passed on.
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
        """Number of packages in the environment."""
        return len(self.install["packages"])

    @property
    def variables(self) -> dict[str, str]:
        """Variables of programs: `env`, and PROVISION_PATH_<NAME> for each folder."""
        return declared_variables(self.env, self.paths)


def parse_document(document: object) -> Document:
    """Return the values of a decoded document.

    Whatever reaches a command line is checked against its grammar here, although it was checked
    where it was written: no value may begin with a dash, contain a control character, or name a
    folder that it should not.

    Raises:
        DocumentError: a field does not have its form; the message names it.
    """
    reader = open_document(document, SCHEMA)
    gpu, kernel = reader.optional_section("gpu"), reader.optional_section("kernel")
    timeout_s = 900
    if "driver_timeout_s" in reader.document:
        timeout_s = reader.count("driver_timeout_s")
    return Document(
        nonce=reader.text("nonce", NONCE),
        digest=reader.text("digest", SHA256).removeprefix("sha256:"),
        python=reader.text("python", PYTHON_VERSION),
        python_mirror=reader.optional_text("python_mirror"),
        uv=read_locked_uv(reader),
        install=read_install_request(reader, "own"),
        expectations=reader.mapping("expectations"),
        installer=_remote_file(reader.section("fetch.installer")),
        probe=_remote_file(reader.section("fetch.probe")),
        report=reader.text("report.report", _ADDRESS),
        log=reader.text("report.log", _ADDRESS),
        status=reader.text("report.status", _ADDRESS),
        system_packages=reader.texts("system_packages", SYSTEM_PACKAGE),
        env=reader.text_map("env", VARIABLE),
        paths=read_paths(reader),
        secrets=reader.text_map("secrets", VARIABLE, _SECRET),
        gpu=(gpu.text("type"), gpu.count("count")) if gpu else None,
        driver_timeout_s=timeout_s,
        kernel=KernelSpec(kernel.text("name", _KERNEL), kernel.text("title")) if kernel else None,
        simulated=reader.texts("simulated"),
    )


def _remote_file(file: FieldReader) -> RemoteFile:
    return RemoteFile(
        file.text("uri", _ADDRESS), file.text("sha256", SHA256).removeprefix("sha256:")
    )
