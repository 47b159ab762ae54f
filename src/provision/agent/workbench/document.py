"""The document of a run on an instance (`document.json`), read strictly into frozen values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.agent_config import SHA256, SetupDocument, open_document, read_shared_fields
from ..core.json_fields import FieldReader

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
    """The Jupyter kernel of the environment: its identifier and its display name."""

    name: str
    title: str


@dataclass(frozen=True)
class WorkbenchDocument(SetupDocument):
    """The whole content of a run's document."""

    digest: str
    python_mirror: str | None
    installer: RemoteFile
    probe: RemoteFile
    code: RemoteFile | None
    wheels: RemoteFile | None
    report: str
    log: str
    status: str
    gpu: tuple[str, int] | None
    driver_timeout_s: int
    kernel: KernelSpec | None
    simulated: tuple[str, ...]

    @property
    def package_count(self) -> int:
        """Number of packages in the environment."""
        return len(self.install["packages"])


def parse_document(document: object) -> WorkbenchDocument:
    """Return the values of a decoded document.

    Values that reach a command line are validated again, although they were validated when the
    document was written: none may begin with a dash, contain a control character, or name a folder
    outside its own.

    Raises:
        DocumentError: a field does not have its form; the message names it.
    """
    reader = open_document(document, SCHEMA)
    gpu, kernel = reader.optional_section("gpu"), reader.optional_section("kernel")
    code = reader.section("fetch").optional_section("code")
    wheels = reader.section("fetch").optional_section("wheels")
    has_timeout = "driver_timeout_s" in reader.document
    return WorkbenchDocument(
        **read_shared_fields(reader, "own", _SECRET),
        digest=reader.text("digest", SHA256).removeprefix("sha256:"),
        python_mirror=reader.optional_text("python_mirror"),
        installer=_remote_file(reader.section("fetch.installer")),
        probe=_remote_file(reader.section("fetch.probe")),
        code=_remote_file(code) if code else None,
        wheels=_remote_file(wheels) if wheels else None,
        report=reader.text("report.report", _ADDRESS),
        log=reader.text("report.log", _ADDRESS),
        status=reader.text("report.status", _ADDRESS),
        gpu=(gpu.text("type"), gpu.count("count")) if gpu else None,
        driver_timeout_s=reader.count("driver_timeout_s") if has_timeout else 900,
        kernel=KernelSpec(kernel.text("name", _KERNEL), kernel.text("title")) if kernel else None,
        simulated=reader.texts("simulated"),
    )


def _remote_file(file: FieldReader) -> RemoteFile:
    return RemoteFile(
        file.text("uri", _ADDRESS), file.text("sha256", SHA256).removeprefix("sha256:")
    )
