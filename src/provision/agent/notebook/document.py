"""The files of a cell: its document (`document.json`), read strictly, and the payload's digest."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.agent_config import (
    VERSION,
    DocumentError,
    SetupDocument,
    open_document,
    read_shared_fields,
)
from ..core.code_clone import CLONE
from ..core.code_files import ARCHIVE
from ..core.files import PROGRAMS, zip_files
from ..core.json_fields import FieldReader
from ..core.own_wheels import WHEELS

SCHEMA = "provision.agent.notebook/1"
_PACKAGE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SECRET = re.compile(r"[^\r\n\0]{1,200}")
_FOLDER = re.compile(r"(/(?!\.\.?(/|$))[^/ \r\n\0]+)+")
_REPORT = re.compile(r"gs://[a-z0-9][a-z0-9._-]+/[^\r\n\0]+|(/(?!\.\.?(/|$))[^/\r\n\0]+)+")


@dataclass(frozen=True, slots=True)
class RuntimeFacts:
    """Values that the facts list for a Colab runtime, with their date; None if not listed."""

    version: str
    as_of: str
    python: str | None
    torch: str | None
    flavour: str | None
    os: str | None
    driver: str | None


@dataclass(frozen=True, slots=True)
class RequiredGpu:
    """The GPU that the spec requires; `device` is its name in nvidia-smi, None if unknown."""

    type: str
    device: str | None
    count: int


@dataclass(frozen=True)
class NotebookDocument(SetupDocument):
    """The whole content of a cell's document."""

    tool: dict[str, str]
    spec: dict[str, str]
    lock: dict[str, str]
    runtime: RuntimeFacts | None
    isolation: str
    gpu: RequiredGpu | None
    driver_min: str | None
    packages: dict[str, str]
    predicted_restart: tuple[str, ...]
    predicted_changed: dict[str, str]
    protected: frozenset[str]
    drive: str | None = None
    """Where Google Drive is mounted; None if no path is on it."""
    report: str | None = None
    """The file on Drive or the gs:// address that the report is copied to."""

    @property
    def shared(self) -> bool:
        """True if the packages are installed into the interpreter of the image."""
        return self.isolation == "system"

    def required_size(self, key: str) -> int | None:
        """Return a size that the spec requires ("ram_bytes"), None for no requirement."""
        requires = self.expectations.get("requires")
        value = requires.get(key) if isinstance(requires, dict) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return int(value)


def parse_document(document: object) -> NotebookDocument:
    """Return the values of a decoded document.

    Values that reach a command line are validated again, although they were validated when the
    document was written.

    Raises:
        DocumentError: a field does not have its form; the message names it.
    """
    reader = open_document(document, SCHEMA)
    isolation = reader.one_of("isolation", ("system", "venv"))
    shared = read_shared_fields(reader, "shared" if isolation == "system" else "own", _SECRET)
    expectations = shared["expectations"]
    has_nonce = expectations.get("nonce") == shared["nonce"]
    if not has_nonce or not isinstance(expectations.get("python"), dict):
        raise DocumentError(
            "`expectations` in the document must contain `python` and a nonce that equals that of "
            "the document"
        )
    predicted = reader.section("predicted")
    return NotebookDocument(
        **shared,
        tool=reader.text_map("tool"),
        spec=reader.text_map("spec"),
        lock=reader.text_map("lock"),
        runtime=_runtime(reader.optional_section("runtime")),
        isolation=isolation,
        gpu=_gpu(reader.optional_section("gpu")),
        driver_min=reader.optional_text("driver_min", VERSION),
        packages=_package_versions(shared["install"]),
        predicted_restart=predicted.texts("restart", _PACKAGE),
        predicted_changed=predicted.text_map("changed", _PACKAGE),
        protected=frozenset(reader.texts("protected", _PACKAGE)),
        drive=reader.optional_text("drive", _FOLDER),
        report=reader.optional_text("report", _REPORT),
    )


def _runtime(runtime: FieldReader | None) -> RuntimeFacts | None:
    if runtime is None:
        return None
    optional = ("python", "torch", "flavour", "os", "driver")
    return RuntimeFacts(
        runtime.text("version"),
        runtime.text("as_of"),
        *(runtime.optional_text(key) for key in optional),
    )


def _gpu(gpu: FieldReader | None) -> RequiredGpu | None:
    if gpu is None:
        return None
    return RequiredGpu(gpu.text("type"), gpu.optional_text("device"), gpu.count("count", 10**4))


def _package_versions(install: dict[str, Any]) -> dict[str, str]:
    versions = {}
    for position, entry in enumerate(install["packages"]):
        package = entry if isinstance(entry, dict) else {}
        name, version = str(package.get("name")), package.get("version")
        if not isinstance(version, str) or not _PACKAGE.fullmatch(name):
            raise DocumentError(
                f"install.packages[{position}] in the document must have a name and a version"
            )
        versions[name] = version
    return versions


PAYLOAD_FILES = ("cell.pyz", "document.json", "installer.pyz", "probe.pyz")
FOLDER_DIGITS = 12
"""Number of digits of the payload's sha256 in its folder's name."""


def compute_payload_digest(folder: Path) -> str:
    """Return the payload's sha256, by which its folder is named. Raises DocumentError."""
    members: dict[str, bytes] = {}
    optional = (name for name in (ARCHIVE, CLONE, WHEELS) if (folder / name).exists())
    for name in (*PAYLOAD_FILES, *optional):
        try:
            members[name] = (folder / name).read_bytes()
        except OSError as error:
            raise DocumentError(f"cannot read {folder / name}: {error.strerror or error}") from None
    digest = hashlib.sha256(zip_files(members, first=PROGRAMS)).hexdigest()
    if folder.name != digest[:FOLDER_DIGITS]:
        raise DocumentError(
            f"the files in {folder} are not the files that the cell wrote: their sha256 is "
            f"{digest[:FOLDER_DIGITS]}..."
        )
    return digest
