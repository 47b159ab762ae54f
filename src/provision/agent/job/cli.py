"""Command line in a container of a job: `run` a document, `fetch` a program by hash."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.agent_config import DocumentError, read_document
from ..core.process import ProcessResult
from ..workbench.cli import unpack
from ..workbench.cloud import CloudClient
from ..workbench.instance import UserAccount, WorkbenchInstance
from ..workbench.status import SecretRedactor
from ..workbench.uv_download import main as fetch
from .cluster import ClusterError, read_place
from .document import parse_job_document
from .phases import run_phases
from .status import ReplicaReporter

_SECRETS = "https://secretmanager.googleapis.com"
_DRIVER = "/usr/local/nvidia"
"""The host's driver in a container: its libraries are on no search path of a plain image."""


@dataclass
class JobMachine(WorkbenchInstance):
    """The container: one user, and the driver of the host on the search paths."""

    machine_variables: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        argv: Sequence[str],
        timeout_s: float,
        *,
        variables: Mapping[str, str] | None = None,
        **options: Any,
    ) -> ProcessResult:
        """Run a program as WorkbenchInstance does."""
        merged = {**self.machine_variables, **(variables or {})}
        return super().run(argv, timeout_s, variables=merged, **options)


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when the run is done, 1 when a phase failed, 2 for an unusable document.

    The exit code of the user's program is returned as it is.
    """
    arguments = list(sys.argv[1:] if words is None else words)
    if arguments == ["fetch"]:
        return fetch()
    if arguments[:1] == ["unpack"]:
        return unpack(*arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        document = read_document(options.document, parse_job_document)
        place = read_place(os.environ)
    except (DocumentError, ClusterError) as error:
        print(f"provision: {error}", flush=True)
        return 2
    os.chmod(options.document, 0o600)  # addresses of mirrors may contain passwords
    redactor = SecretRedactor()
    secrets = os.environ.get("PROVISION_SECRETS", _SECRETS)
    cloud = CloudClient(options.metadata, options.storage, secrets)
    home = Path(os.environ.get("HOME") or "/root")
    user = UserAccount("root", os.getuid(), os.getgid(), home)
    driver = find_driver_paths(os.environ)
    machine = JobMachine(user, options.work, redactor, {**os.environ, **driver}, driver)
    reporter = ReplicaReporter(document.of_replica(place.name), cloud, redactor)
    return run_phases(document, place, machine, cloud, reporter)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="device.pyz", description="Sets up this replica of a job, verifies it, and reports."
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("run", help="set up and verify this replica")
    verb.add_argument("--document", type=Path, required=True, metavar="FILE")
    verb.add_argument(
        "--work", type=Path, required=True, metavar="FOLDER", help="folder for this run's files"
    )
    for service in ("metadata", "storage"):
        verb.add_argument(f"--{service}", required=True, metavar="URL")
    return parser


def find_driver_paths(environ: Mapping[str, str], folder: str = _DRIVER) -> dict[str, str]:
    """Return the search paths with those of the driver; {} if the machine has no driver there."""
    if not os.path.isdir(f"{folder}/lib64"):
        return {}
    libraries = environ.get("LD_LIBRARY_PATH", "")
    path = environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {
        "LD_LIBRARY_PATH": f"{folder}/lib64:{libraries}".rstrip(":"),
        "PATH": f"{path}:{folder}/bin",
    }
