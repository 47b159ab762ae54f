"""The document of a job (`document.json`): the setup of each machine, and what they share."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..core.agent_config import open_document
from ..workbench.document import WorkbenchDocument, parse_document

SCHEMA = "provision.agent.job/1"
_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]+/[^\r\n\0]+/")


@dataclass(frozen=True, slots=True)
class JobDocument:
    """The whole content of a job's document.

    Attributes:
        setup: Environment, probe and secrets of each machine, as on a Workbench instance.
        folder: gs:// address with a slash at its end; each replica writes below it.
        join_timeout_s: How long a replica waits for the others.
    """

    setup: WorkbenchDocument
    folder: str
    join_timeout_s: int

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
    return JobDocument(
        parse_document(reader.mapping("setup")),
        reader.text("folder", _FOLDER),
        reader.count("join_timeout_s"),
    )
