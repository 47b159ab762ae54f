"""The document of a job (`document.json`): the setup of each machine, and what they share."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ..core.agent_config import SHA256, open_document
from ..core.json_fields import FieldReader
from ..workbench.document import WorkbenchDocument, parse_document

SCHEMA = "provision.agent.job/1"
_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]+/[^\r\n\0]+/")
_WHEEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\.whl")
_PACKAGE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_GLIBC = re.compile(r"\d{1,3}\.\d{1,3}")


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """The user's program.

    Attributes:
        argv: The program and its arguments.
        processes: Processes on each machine, started by torchrun; 0 starts the program itself.
        restarts: How often the processes, or a lost machine, start again.
        about: The first message to the sampler: subject, program, names of secrets, tool. {} if
            nothing is recorded.
    """

    argv: tuple[str, ...]
    processes: int
    restarts: int
    about: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A wheel: file name, sha256 (hexadecimal), and the oldest glibc that it runs on, if any."""

    name: str
    sha256: str
    glibc: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class WheelFolder:
    """The folder of wheels in the bucket.

    Attributes:
        folder: gs:// address with a slash at its end.
        packages: The wheels of each locked package for this platform, the best one first.
        uv: Those of the locked uv.
    """

    folder: str
    packages: dict[str, tuple[WheelFile, ...]]
    uv: tuple[WheelFile, ...]

    def locate(self, file: WheelFile) -> str:
        """Return the gs:// address of a wheel, which has its sha256."""
        return f"{self.folder}{file.sha256}/{file.name}"


@dataclass(frozen=True, slots=True)
class JobDocument:
    """The whole content of a job's document.

    Attributes:
        setup: Environment, probe and secrets of each machine, as on a Workbench instance.
        folder: gs:// address with a slash at its end; each replica writes below it.
        join_timeout_s: How long a replica waits for the others.
        is_baked: The image contains the packages, and nothing is installed.
        wheels: The wheels in the bucket; None if they are not used.
        program: The program to run; None for a verification.
    """

    setup: WorkbenchDocument
    folder: str
    join_timeout_s: int
    is_baked: bool
    wheels: WheelFolder | None = None
    program: ProgramRequest | None = None

    def of_replica(self, name: str) -> WorkbenchDocument:
        """Return the setup of one machine, with its own addresses."""
        folder = f"{self.folder}{name}/"
        return replace(
            self.setup,
            report=f"{folder}report.json",
            log=f"{folder}log.txt",
            status=f"{folder}status.json",
        )


def parse_job_document(document: object) -> JobDocument:
    """Return the values of a decoded document. Raises DocumentError."""
    reader = open_document(document, SCHEMA)
    program, wheels = reader.optional_section("program"), reader.optional_section("wheels")
    return JobDocument(
        parse_document(reader.mapping("setup")),
        reader.text("folder", _FOLDER),
        reader.count("join_timeout_s"),
        reader.one_of("environment", ("install", "baked")) == "baked",
        _read_wheels(wheels) if wheels is not None else None,
        _read_program(program) if program is not None else None,
    )


def _read_program(program: FieldReader) -> ProgramRequest:
    argv = program.texts("argv")
    if not argv:
        raise program.error("argv", "a list with a program", "")
    return ProgramRequest(
        argv,
        int(program.number("processes")),
        int(program.number("restarts")),
        program.mapping("about"),
    )


def _read_wheels(wheels: FieldReader) -> WheelFolder:
    packages = wheels.section("packages")
    for name in packages.document:
        packages.check_text(name, name, _PACKAGE)
    return WheelFolder(
        wheels.text("folder", _FOLDER),
        {name: _read_files(packages, name) for name in packages.document},
        _read_files(wheels, "uv"),
    )


def _read_files(reader: FieldReader, route: str) -> tuple[WheelFile, ...]:
    files = []
    for number, document in enumerate(reader.items(route)):
        if not isinstance(document, dict):
            raise reader.error(f"{route}[{number}]", "an object", document)
        row = replace(reader, document=document, prefix=f"{reader.prefix}{route}[{number}].")
        glibc = row.optional_text("glibc", _GLIBC)
        files.append(
            WheelFile(
                row.text("name", _WHEEL),
                row.text("sha256", SHA256).removeprefix("sha256:"),
                tuple(map(int, glibc.split("."))) if glibc else None,
            )
        )
    return tuple(files)
