"""The document of a job (`document.json`): the setup of each machine, and what they share."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ..core.agent_config import open_document
from ..core.json_fields import FieldReader
from ..workbench.document import WorkbenchDocument, parse_document

SCHEMA = "provision.agent.job/1"
_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]+/[^\r\n\0]+/")


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
class JobDocument:
    """The whole content of a job's document.

    Attributes:
        setup: Environment, probe and secrets of each machine, as on a Workbench instance.
        folder: gs:// address with a slash at its end; each replica writes below it.
        join_timeout_s: How long a replica waits for the others.
        is_baked: The image contains the packages, and nothing is installed.
        program: The program to run; None for a verification.
    """

    setup: WorkbenchDocument
    folder: str
    join_timeout_s: int
    is_baked: bool
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
    program = reader.optional_section("program")
    return JobDocument(
        parse_document(reader.mapping("setup")),
        reader.text("folder", _FOLDER),
        reader.count("join_timeout_s"),
        reader.one_of("environment", ("install", "baked")) == "baked",
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
