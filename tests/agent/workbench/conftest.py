"""A cloud to talk to, and a machine that is this one: its home and its programs lie in a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision.agent.workbench.cloud import CloudClient as Services
from provision.agent.workbench.document import WorkbenchDocument, parse_document
from provision.agent.workbench.environment import Environment
from provision.agent.workbench.instance import UserAccount, WorkbenchInstance
from provision.agent.workbench.phases import run_phases
from provision.agent.workbench.status import SecretRedactor, StatusReporter
from tests.agent.workbench.bench import Cloud

UV = str(Path(sys.executable).with_name("uv"))


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with Cloud(tmp_path / "cloud") as found:
        yield found


@dataclass
class Bench:
    """One instance in a folder: `program` puts a program of a few shell lines on its PATH."""

    folder: Path
    cloud: Cloud
    console: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("bin", "home", "work"):
            (self.folder / name).mkdir()
        (self.folder / "log").write_text("")
        (self.folder / "bin/uv").symlink_to(UV)
        environ = {
            "PATH": f"{self.folder}/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
        }
        environ |= {key: os.environ[key] for key in ("SSL_CERT_FILE",) if key in os.environ}
        person = UserAccount("someone", os.getuid(), os.getgid(), self.folder / "home")
        self.machine = WorkbenchInstance(person, self.folder / "work", SecretRedactor(), environ)
        metadata = f"{self.cloud.address}/computeMetadata/v1"
        self.services = Services(
            metadata, self.cloud.address, self.cloud.address, sleep=lambda _: None
        )

    def program(self, name: str, *lines: str) -> None:
        path = self.folder / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text("\n".join(["#!/bin/bash", *lines, ""]))
        path.chmod(0o755)

    def document(self, *names: str, **changes: Any) -> WorkbenchDocument:
        return parse_document(self.cloud.document("nonce-0001", *names, **changes))

    def locked(self, *names: str, **changes: Any) -> Environment:
        return Environment(self.document(*names, **changes), self.machine)

    def teller(self, document: WorkbenchDocument) -> StatusReporter:
        return StatusReporter(
            document, self.services, self.machine.work, self.machine.redactor, self.console.append
        )

    def run(self, document: WorkbenchDocument) -> int:
        return run_phases(
            document, self.machine, self.services, self.teller(document), self.folder / "log"
        )

    @property
    def environment(self) -> Path:
        return self.folder / "home/.provision/envs/abababababab"


@pytest.fixture
def bench(tmp_path: Path, cloud: Cloud) -> Bench:
    return Bench(tmp_path, cloud)


Change = Callable[[dict[str, Any]], None]
