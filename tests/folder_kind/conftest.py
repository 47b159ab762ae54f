"""A project with a folder target, and its service."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import fork_server
from tests.conftest import ROOT
from tests.folder_kind.server import FolderService, serve
from tests.rig import MINOR, Bench

_PROGRAM = (
    "import sys; from provision.cli import run_cli; from tests.folder_kind import REGISTRY; "
    "sys.exit(run_cli(sys.argv[1:], REGISTRY))"
)


@dataclass
class Project:
    """A spec with a folder target named machine."""

    bench: Bench
    service: FolderService

    def write(self, packages: str = "", more: str = "", **fields: object) -> Path:
        """Write the spec and return its path."""
        own = "".join(f", {name}: {value}" for name, value in fields.items())
        return self.bench.spec(
            f'gpu: none\npython: "{MINOR}"\npackages: [{packages}]\n{more}'
            f"targets:\n  machine: {{kind: folder, service: '{self.service.address}'{own}}}\n"
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command line with the registry that has the kind."""
        argv = [*fork_server.ARGV, *words]
        registry = {fork_server.REGISTRY_VARIABLE: "tests.folder_kind:REGISTRY"}
        environment = self.bench.environment(**registry)
        if not fork_server.can_fork(argv, {"env": environment}):
            argv = [sys.executable, "-c", _PROGRAM, *words]
            environment = self.bench.environment(PYTHONPATH=str(ROOT))
        return fork_server.run(
            argv,
            cwd=self.bench.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            stdin=subprocess.DEVNULL,
        )

    def check(self, code: int, *words: str) -> str:
        """Run the command line, compare its exit code, and return what it printed."""
        done = self.run(*words)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr


@pytest.fixture
def project(bench: Bench, tmp_path: Path) -> Iterator[Project]:
    with serve(tmp_path / "machines") as service:
        project = Project(bench, service)
        project.write()
        yield project
