"""A reader of real files, and specs written into a folder of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from provision import source
from provision.diagnostics import Diagnostic
from provision.errors import ExternalError
from provision.spec import Spec

OK = 'gpu: L4\npython: "3.12"\npackages: [torch]\n'


class Disk:
    """Reads real files within a limit, and nothing else."""

    def read(self, path: Path, limit: int) -> bytes:
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise ExternalError(f"{path} cannot be read: {error.strerror}") from error
        if len(raw) > limit:
            raise ExternalError(f"{path} is larger than {limit} bytes")
        return raw

    def exists(self, path: Path) -> bool:
        return path.exists() or path.is_symlink()


@dataclass(frozen=True)
class Linted:
    """A document and all that was found about it."""

    source: source.Source
    spec: Spec | None
    findings: tuple[Diagnostic, ...]

    def one(self, name: str) -> Diagnostic:
        (found,) = [finding for finding in self.findings if finding.name == name]
        return found

    @property
    def names(self) -> list[str]:
        return [finding.name for finding in self.findings]

    def at(self, finding: Diagnostic) -> str:
        """The place and the characters that a finding points at: `2:9 3.10`."""
        span = self.source.span(finding.where)
        return (
            f"{span.start.line}:{span.start.column} "
            f"{self.source.files[span.file][span.start.offset : span.end.offset]}"
        )


class Folder:
    """A project's folder with specs in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def lint_all(self, content: str | bytes, name: str = "spec.yaml") -> list[Linted]:
        linted = []
        for document in source.read_spec_file(self.write(name, content), Disk()):
            spec, more = source.validate_source(document)
            linted.append(Linted(document, spec, (*document.diagnostics, *more)))
        return linted

    def lint(self, content: str | bytes, name: str = "spec.yaml") -> Linted:
        (one,) = self.lint_all(content, name)
        return one


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "project").mkdir()
    made = Folder(tmp_path / "project")
    made.write("pyproject.toml", "")
    return made


@pytest.fixture
def lint(folder: Folder) -> Callable[..., Linted]:
    return folder.lint


@pytest.fixture
def disk() -> Disk:
    return Disk()
