"""Specs as text, read by the real engine and put before the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from provision import source
from provision.diagnostics import Diagnostic
from provision.errors import ExternalError
from provision.facts import Facts, load_facts
from provision.rules import LintContext, ResolvedSet, run_rules


class Disk:
    """Reads real files, and nothing else."""

    def read(self, path: Path, limit: int) -> bytes:
        try:
            return path.read_bytes()[:limit]
        except OSError as error:
            raise ExternalError(f"{path} cannot be read") from error

    def exists(self, path: Path) -> bool:
        return path.exists()


@dataclass(frozen=True)
class Judged:
    """A spec and what the rules say about it.

    `findings` and `ids` leave out GPU010: most specs of these tests have a GPU and only the
    packages that matter to another rule, so no torch. `of` and `one` find it.
    """

    source: source.Source
    case: LintContext
    all_findings: tuple[Diagnostic, ...]

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        return tuple(finding for finding in self.all_findings if finding.id != "GPU010")

    @property
    def ids(self) -> list[str]:
        return [finding.id for finding in self.findings]

    def area(self, *areas: str) -> list[str]:
        """The ids that begin so: what one family of rules says, whatever another says beside it."""
        return [identity for identity in self.ids if identity.startswith(areas)]

    def of(self, identity: str) -> list[Diagnostic]:
        return [finding for finding in self.all_findings if finding.id == identity]

    def one(self, identity: str) -> Diagnostic:
        (found,) = self.of(identity)
        return found

    def at(self, finding: Diagnostic) -> str:
        """The characters that a finding points at."""
        span = self.source.span(finding.where)
        return self.source.files[span.file][span.start.offset : span.end.offset]


Ask = Callable[..., Judged]


def judge_text(
    text: str, folder: Path, facts: Facts, resolved: ResolvedSet | None = None
) -> Judged:
    """Write a spec to `folder` and return what the rules find in it; fails when the spec is not
    valid.
    """
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    (document,) = source.read_spec_file(path, Disk())  # type: ignore[arg-type]
    spec, problems = source.validate_source(document)
    assert spec is not None, (text, document.diagnostics, problems)
    case = LintContext(spec, document, facts, resolved)
    return Judged(document, case, run_rules(case))


@pytest.fixture(scope="session")
def facts() -> Facts:
    return load_facts()


@pytest.fixture
def ask(tmp_path: Path, facts: Facts) -> Ask:
    def asked(text: str, resolved: ResolvedSet | None = None) -> Judged:
        return judge_text(text, tmp_path, facts, resolved)

    return asked
